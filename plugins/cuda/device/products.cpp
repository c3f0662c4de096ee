// SPDX-License-Identifier: Apache-2.0
// cuBLASLt thinks in columns: a row-major product is that of the operands in the other order, each
// read as its transpose. So "a" there is our b, and m there is our n.
#include "products.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <cublasLt.h>

#include "library.hpp"
#include "quantization.hpp"

namespace tenon::cuda {
namespace {

struct Lt {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtGetStatusString) text;
};

Result<Lt> load(const std::string& name) {
  TN_TRY(library, Library::open(name, "the CUDA toolkit 13 (cuBLAS)"));
  Lt lt{};
  TN_CHECK(library.get("cublasLtCreate", &lt.create));
  TN_CHECK(library.get("cublasLtDestroy", &lt.destroy));
  TN_CHECK(library.get("cublasLtMatmul", &lt.matmul));
  TN_CHECK(library.get("cublasLtMatmulAlgoGetHeuristic", &lt.heuristic));
  TN_CHECK(library.get("cublasLtMatmulDescCreate", &lt.desc_create));
  TN_CHECK(library.get("cublasLtMatmulDescDestroy", &lt.desc_destroy));
  TN_CHECK(library.get("cublasLtMatmulDescSetAttribute", &lt.desc_set));
  TN_CHECK(library.get("cublasLtMatrixLayoutCreate", &lt.layout_create));
  TN_CHECK(library.get("cublasLtMatrixLayoutDestroy", &lt.layout_destroy));
  TN_CHECK(library.get("cublasLtMatrixLayoutSetAttribute", &lt.layout_set));
  TN_CHECK(library.get("cublasLtMatmulPreferenceCreate", &lt.preference_create));
  TN_CHECK(library.get("cublasLtMatmulPreferenceDestroy", &lt.preference_destroy));
  TN_CHECK(library.get("cublasLtMatmulPreferenceSetAttribute", &lt.preference_set));
  TN_CHECK(library.get("cublasLtGetStatusString", &lt.text));
  return lt;
}

// Opened once by each name; a failure is tried again, since somebody may install it meanwhile.
Result<Lt> opened(const std::string& library) {
  static std::mutex mutex;
  static std::map<std::string, Lt> all;
  std::lock_guard lock(mutex);
  if (auto found = all.find(library); found != all.end()) return found->second;
  TN_TRY(made, load(library));
  return all.emplace(library, made).first->second;
}

Status failed(const Lt& lt, cublasStatus_t status, std::string_view doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return {TN_INTERNAL, cat("cuda: cuBLASLt: ", doing, ": ", lt.text(status))};
}

struct TypeRow {
  uint32_t dtype;
  cudaDataType_t type;
};
constexpr TypeRow kTypes[] = {
    {TN_F32, CUDA_R_32F}, {TN_F16, CUDA_R_16F},      {TN_BF16, CUDA_R_16BF},   {TN_I8, CUDA_R_8I},
    {TN_I32, CUDA_R_32I}, {kF8E4M3, CUDA_R_8F_E4M3}, {kF8E5M2, CUDA_R_8F_E5M2}};

cudaDataType_t data_type(uint32_t dtype) {
  const TypeRow* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [dtype](const TypeRow& one) { return one.dtype == dtype; });
  return row->type;  // handlers refuse all others
}

cublasLtEpilogue_t epilogue(const Product& p) {
  bool has_bias = p.bias >= 0;
  switch (p.activation) {
    case Activation::kRelu:
      return has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::kGeluTanh:
      return has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default:
      return has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

class LtProduct : public PreparedProduct {
 public:
  LtProduct(const Lt& lt,
            cublasLtHandle_t handle,
            Device& device,
            const Product& product,
            const ProductAlignment& alignment)
      : lt_(lt), handle_(handle), device_(device), product_(product), alignment_(alignment) {}
  ~LtProduct() override {
    for (cublasLtMatrixLayout_t layout : {a_, b_, out_}) {
      if (layout) lt_.layout_destroy(layout);
    }
    if (desc_) lt_.desc_destroy(desc_);
  }

  Status describe(bool tf32) {
    const Product& p = product_;
    cublasComputeType_t compute = is_integer()                ? CUBLAS_COMPUTE_32I
                                  : p.dtype == TN_F32 && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                              : CUBLAS_COMPUTE_32F;
    cudaDataType_t scale = is_integer() ? CUDA_R_32I : CUDA_R_32F;
    TN_CHECK(failed(lt_, lt_.desc_create(&desc_, compute, scale), "a description"));
    cublasOperation_t first = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t after = epilogue(p);
    TN_CHECK(set(CUBLASLT_MATMUL_DESC_TRANSA, first));
    TN_CHECK(set(CUBLASLT_MATMUL_DESC_TRANSB, second));
    TN_CHECK(set(CUBLASLT_MATMUL_DESC_EPILOGUE, after));
    // The heuristic looks at how a bias is aligned; each launch brings the true address.
    if (p.bias >= 0) {
      const void* aligned = reinterpret_cast<const void*>(uintptr_t{alignment_.bias});
      TN_CHECK(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned));
    }
    // Rows of ours are columns there; a transposed operand is stored the other way round.
    TN_CHECK(
        layout(&a_, p.b_dtype, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.stride_b));
    TN_CHECK(
        layout(&b_, p.dtype, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m, p.stride_a));
    return layout(&out_, p.out_dtype, p.n, p.m, p.m * p.n);
  }

  Status choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    TN_CHECK(failed(lt_, lt_.preference_create(&preference), "a preference"));
    auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
      return failed(lt_, lt_.preference_set(preference, what, &value, sizeof value),
                    "a preference");
    };
    Status preferred = prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, size_t{kProductWorkspace});
    for (auto [what, bytes] : {std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_.b),
                               {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_.a},
                               {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_.c},
                               {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_.out}})
      if (preferred.ok()) preferred = prefer(what, bytes);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    cublasStatus_t status =
        lt_.heuristic(handle_, desc_, a_, b_, out_, out_, preference, 1, &best, &found);
    lt_.preference_destroy(preference);
    TN_CHECK(std::move(preferred));
    bool is_missing =
        status == CUBLAS_STATUS_NOT_SUPPORTED ||
        (status == CUBLAS_STATUS_SUCCESS && (found == 0 || best.state != CUBLAS_STATUS_SUCCESS));
    if (is_missing) return unsupported(cat("cuda: cuBLASLt has no algorithm for ", shape_text()));
    TN_CHECK(failed(lt_, status, shape_text()));
    algorithm_ = best.algo;
    return {};
  }

  const cublasLtMatmulAlgo_t& algorithm() const { return algorithm_; }
  void use(const cublasLtMatmulAlgo_t& algorithm) { algorithm_ = algorithm; }

  Status launch(const void* a,
                const void* b,
                const void* bias,
                const void* c,
                void* out,
                void* workspace,
                cudaStream_t stream) override {
    std::lock_guard lock(mutex_);  // the description carries this call's bias
    if (bias) TN_CHECK(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    float alpha = static_cast<float>(product_.alpha);
    float beta = c ? static_cast<float>(product_.beta) : 0.0f;
    int32_t one = 1, none = 0;
    const void* factor = is_integer() ? static_cast<const void*>(&one) : &alpha;
    const void* old_factor = is_integer() ? static_cast<const void*>(&none) : &beta;
    cublasStatus_t status =
        lt_.matmul(handle_, desc_, factor, b, a_, a, b_, old_factor, c ? c : out, out_, out, out_,
                   &algorithm_, workspace, kProductWorkspace, stream);
    if (status == CUBLAS_STATUS_EXECUTION_FAILED) {
      TN_CHECK(device_.health().check(cudaPeekAtLastError(), "a product"));
    }
    return failed(lt_, status, shape_text());
  }

 private:
  bool is_integer() const { return product_.dtype == TN_I8; }

  template <class T>
  Status set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return failed(lt_, lt_.desc_set(desc_, attribute, &value, sizeof value), "an attribute");
  }

  Status layout(
      cublasLtMatrixLayout_t* made, uint32_t dtype, int64_t rows, int64_t cols, int64_t stride) {
    TN_CHECK(failed(lt_,
                    lt_.layout_create(made, data_type(dtype), static_cast<uint64_t>(rows),
                                      static_cast<uint64_t>(cols), rows),
                    "a layout"));
    int32_t batch = static_cast<int32_t>(product_.batch);
    TN_CHECK(failed(lt_,
                    lt_.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
                    "a batch"));
    return failed(
        lt_,
        lt_.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
        "a batch");
  }

  std::string shape_text() const {
    return cat("a product of ", product_.m, "x", product_.k, " and ", product_.k, "x", product_.n,
               ", batch ", product_.batch, ", ", dtype_name(product_.dtype));
  }

  const Lt& lt_;
  cublasLtHandle_t handle_;
  Device& device_;
  Product product_;
  ProductAlignment alignment_;
  std::mutex mutex_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, out_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

// All that an algorithm depends on.
std::string form_of(const Product& p, bool tf32, const ProductAlignment& at) {
  return cat(p.dtype, " ", p.b_dtype, " ", p.out_dtype, " ", p.m, " ", p.n, " ", p.k, " ", p.batch,
             " ", p.stride_a, " ", p.stride_b, " ", p.transpose_a, p.transpose_b, " ",
             static_cast<int>(epilogue(p)), " ", p.c >= 0, tf32, " ", at.a, " ", at.b, " ", at.bias,
             " ", at.c, " ", at.out);
}

class LtProducts : public Products {
 public:
  LtProducts(Lt lt, cublasLtHandle_t handle, Device& device)
      : lt_(lt), handle_(handle), device_(device) {}
  ~LtProducts() override { lt_.destroy(handle_); }

  Result<std::unique_ptr<PreparedProduct>> prepare(const Product& product,
                                                   bool tf32,
                                                   const ProductAlignment& alignment) override {
    TN_CHECK(device_.select());
    auto made = std::make_unique<LtProduct>(lt_, handle_, device_, product, alignment);
    TN_CHECK(made->describe(tf32));
    std::lock_guard lock(mutex_);
    Known& known = known_[form_of(product, tf32, alignment)];
    if (!known.algorithm && known.why_none.empty()) TN_CHECK(ask(*made, &known));
    if (!known.algorithm) return unsupported(known.why_none);
    made->use(*known.algorithm);
    return std::unique_ptr<PreparedProduct>(std::move(made));
  }

 private:
  struct Known {
    std::optional<cublasLtMatmulAlgo_t> algorithm;
    std::string why_none;
  };
  static Status ask(LtProduct& product, Known* known) {
    Status chosen = product.choose();
    if (chosen.code() == TN_UNIMPLEMENTED) {
      known->why_none = chosen.text();
      return {};
    }
    TN_CHECK(std::move(chosen));
    known->algorithm = product.algorithm();
    return {};
  }

  Lt lt_;
  cublasLtHandle_t handle_;
  Device& device_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by form; claims ask for each more than once
};

}  // namespace

std::string why_no_cublaslt(const std::string& library) {
  constexpr const char* kNeeds = "a product needs cuBLASLt: ";
  if (library.empty()) return cat(kNeeds, "option cublaslt is empty");
  Result<Lt> lt = opened(library);
  return lt.ok() ? "" : kNeeds + reason_of(lt.status());
}

Result<std::unique_ptr<Products>> Products::open(Device& device, const std::string& library) {
  TN_TRY(lt, opened(library));
  TN_CHECK(device.select());
  cublasLtHandle_t handle = nullptr;
  TN_CHECK(failed(lt, lt.create(&handle), "a handle"));
  return std::unique_ptr<Products>(std::make_unique<LtProducts>(lt, handle, device));
}

}  // namespace tenon::cuda
