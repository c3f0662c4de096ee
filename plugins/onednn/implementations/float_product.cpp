// SPDX-License-Identifier: Apache-2.0
#include "float_product.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "cpu.hpp"
#include "gemm_epilogue.hpp"
#include "kernels/float_product.h"

namespace tenon::onednn {
namespace {

using Op = kernels::EpilogueOp;

// With more, oneDNN is faster: on AVX-512 MiniLM takes 1.01 times as long by it with 64 rows, 0.987
// with 128 and 0.967 with 512; on AVX2 products of 2048 rows take 0.81 to 0.99.
int64_t most_rows() {
  return best_level() == kernels::Level::kAvx512 ? 64 : 1024;
}

class StepBuilder {
 public:
  StepBuilder(Lowering& lowering, GemmStep step, GemmEpilogue finish)
      : lowering_(lowering), step_(std::move(step)), finish_(std::move(finish)) {}

  void build(int64_t k_stride, int64_t n_stride) {
    const int result = finish_.epilogue.result;
    View dst{.type = finish_.epilogue.quant ? finish_.epilogue.quant_type
                                            : lowering_.stored_type(result),
             .dims = lowering_.graph().values[result].dims,
             .strides = step_.dst_strides};
    const std::vector<Place> others = bind(lowering_, finish_);
    dst.buffer = lowering_.scratch(dst.bytes());
    const View b = packed(k_stride, n_stride);
    const EpilogueRows rows =
        epilogue_rows(lowering_, step_, finish_, kernels::float_columns(step_.args.n));
    Step made{.name = lowering_.graph().nodes[step_.node].name, .kernel = "tenon:float_product"};
    made.flops = 2.0 * static_cast<double>(step_.args.m * step_.args.n * step_.args.k);
    made.bytes = static_cast<double>(step_.src.bytes() + dst.bytes() + b.bytes());
    made.places = {place_of(step_.src), place_of(dst), place_of(b), place_of(rows.scales),
                   place_of(rows.bias)};
    made.places.insert(made.places.end(), others.begin(), others.end());
    made.always_succeeds = true;
    made.kernel_function = [args = arguments(dst), ops = finish_.ops](
                               const kernels::Context& context,
                               void* const* pointers) -> const char* {
      kernels::FloatProductArgs call = args;
      call.a = static_cast<const float*>(pointers[0]);
      call.dst.data = pointers[1];
      call.b = static_cast<const float*>(pointers[2]);
      call.scales = static_cast<const float*>(pointers[3]);
      call.bias = static_cast<const float*>(pointers[4]);
      const BoundOps bound(ops, pointers + 5, &call);
      kernels::float_product(context, call);
      return nullptr;
    };
    lowering_.add_step(std::move(made));
    lowering_.set_view(result, dst);
    mark_absorbed(lowering_, finish_.epilogue);
  }

 private:
  kernels::FloatProductArgs arguments(const View& dst) {
    kernels::FloatProductArgs args;
    args.m = step_.args.m;
    args.n = step_.args.n;
    args.k = args.a_stride = step_.args.k;
    set_result(finish_, dst, step_.dst_row, &args);
    shorten_gelu(finish_.ops, args.dst);
    return args;
  }

  // Shared by all plans of the model.
  View packed(int64_t k_stride, int64_t n_stride) const {
    const View& weights = step_.weights.view;
    const int64_t k = step_.args.k, n = step_.args.n;
    const int64_t panel = kernels::float_panel(kernels::make_context(best_level()));
    const kernels::FloatWeights from = {static_cast<const float*>(lowering_.constant_data(weights)),
                                        k, n, k_stride, n_stride};
    const int64_t bytes = kernels::packed_float_bytes(from, panel);
    std::string form = "f32 panels";
    for (int64_t number : {k, n, k_stride, n_stride})
      form += " " + std::to_string(number);
    return lowering_.make_constant(
        ElementType::kF32, {bytes / 4},
        lowering_.weights().made(from.data, weights.bytes(), form, bytes, [&](void* to) {
          kernels::pack_floats(from, panel, static_cast<float*>(to));
        }));
  }

  Lowering& lowering_;
  GemmStep step_;
  GemmEpilogue finish_;
};

bool has_elementary_function(const GemmEpilogue& finish) {
  using Kind = Op::Kind;
  return std::any_of(finish.ops.begin(), finish.ops.end(), [](const Op& op) {
    return op.kind == Kind::kSwish || op.kind == Kind::kSigmoid || op.kind == Kind::kTanh ||
           op.kind == Kind::kGeluErf || op.kind == Kind::kGeluTanh;
  });
}

// Empty: it is faster than oneDNN.
std::string why_slower(const GemmStep& step, const GemmEpilogue& finish) {
  if (step.args.m > most_rows())
    return "more than " + std::to_string(most_rows()) + " rows, for which oneDNN is faster";
  // A GELU takes a tenth of the time of MiniLM's products (bench_onednn_float); oneDNN's is
  // shorter.
  const bool has_slow_ending =
      best_level() == kernels::Level::kAvx512 && has_elementary_function(finish);
  return has_slow_ending ? "oneDNN is faster at the activation behind it" : "";
}

std::string why_not_operands(const ProductSite& site) {
  const Lowering& lowering = site.lowering;
  if (site.product.transpose_a) return "the first operand is transposed";
  if (lowering.real_type() != ElementType::kF32) return "floating-point numbers are kept in bf16";
  const View& b = lowering.view(site.product.b);
  if (!lowering.is_constant_view(b)) return "the weights are computed";
  if (b.dims.size() < 2 || !is_one_matrix(b) || !is_dense(b))
    return "the second operand is no single matrix";
  if (b.type != ElementType::kF32 || b.is_quantized()) return "weights are no f32 numbers";
  return {};
}

}  // namespace

Offer offer_float_product(const ProductSite& site) {
  Lowering& lowering = site.lowering;
  if (best_level() < kernels::Level::kAvx2) return refused("the CPU has no fused multiply-add");
  if (std::string why = why_not_operands(site); !why.empty()) return refused(std::move(why));
  const Product& product = site.product;
  const View& b = lowering.view(product.b);
  const size_t rank = b.dims.size();
  const size_t k_axis = product.k_axis(rank), n_axis = product.n_axis(rank);
  const int64_t n = b.dims[n_axis];
  if (b.count() == 0) return refused("weights without elements");
  if (!has_known_row(lowering, product.bias, n)) return refused("the bias is no known row");
  GemmStep step{.node = product.node, .bias = product.bias};
  step.weights = {.view = b};
  step.args.k = b.dims[k_axis];
  step.args.n = step.dst_row = n;
  step.args.m = lowering.view(product.a).count() / step.args.k;
  step.dst_strides = row_major_strides(lowering.graph().values[site.epilogue.result].dims);
  GemmEpilogue finish = finish_of(lowering, step, site.epilogue);
  if (finish.epilogue.nodes.size() < site.epilogue.nodes.size())
    return refused("the kernel does not take along what follows");
  return accepted_unless(
      why_slower(step, finish),
      [&site, step, finish, k_stride = b.strides[k_axis], n_stride = b.strides[n_axis]]() mutable {
        step.src = site.lowering.read_row_major(site.product.a, ElementType::kF32);
        StepBuilder(site.lowering, std::move(step), std::move(finish)).build(k_stride, n_stride);
      });
}

}  // namespace tenon::onednn
