// SPDX-License-Identifier: Apache-2.0
#include "convolution_graph.hpp"

#include <algorithm>

namespace tenon::cuda {
namespace {

// By these numbers an execution finds its tensors.
enum Uid : int64_t { kX = 1, kW, kBias, kZ, kY, kProduct, kAdded, kSum };

constexpr int64_t kPlansTried = 16;
constexpr int64_t kMostWorkspace = int64_t{1} << 30;

cudnnDataType_t data_type(uint32_t dtype) {
  return dtype == TN_F16    ? CUDNN_DATA_HALF
         : dtype == TN_BF16 ? CUDNN_DATA_BFLOAT16
                            : CUDNN_DATA_FLOAT;
}

// The strides of n, c, h, w in memory, with channels last or in this order.
std::vector<int64_t> strides_of(const std::vector<int64_t>& dims, bool channels_last) {
  int64_t c = dims[1], h = dims[2], w = dims[3];
  if (channels_last) return {c * h * w, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

class Builder {
 public:
  Builder(const Cudnn& cudnn, const Convolution& form) : cudnn_(cudnn), c_(form) {}

  // The graph of operations, with everything that it is made of kept alive.
  Result<Descriptor> operations() {
    TN_CHECK(add_convolution());
    // The residual first: cuDNN knows the pattern in this order only.
    bool has_more = c_.bias >= 0 || c_.relu;
    if (c_.z >= 0) TN_CHECK(add_pointwise(CUDNN_POINTWISE_ADD, kZ, has_more ? kAdded : kY));
    if (c_.bias >= 0) TN_CHECK(add_pointwise(CUDNN_POINTWISE_ADD, kBias, c_.relu ? kSum : kY));
    if (c_.relu) TN_CHECK(add_pointwise(CUDNN_POINTWISE_RELU_FWD, 0, kY));
    TN_TRY(graph, Descriptor::make(cudnn_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const Descriptor& one : operations_)
      raw.push_back(one.raw());
    TN_CHECK(graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                       static_cast<int64_t>(raw.size()), raw.data()));
    TN_CHECK(graph.finish());
    return std::move(graph);
  }

  // What the graph is made of, for as long as it is used.
  std::vector<Descriptor> take_parts() {
    for (Descriptor& one : operations_)
      parts_.push_back(std::move(one));
    operations_.clear();
    return std::move(parts_);
  }

 private:
  // What lies in memory has the form's type, what lies between operations is float32.
  Result<cudnnBackendDescriptor_t> tensor(int64_t uid) {
    bool is_virtual = uid == kProduct || uid == kAdded || uid == kSum;
    std::vector<int64_t> dims{c_.n, c_.k, c_.p, c_.q};
    if (uid == kX) dims = {c_.n, c_.c, c_.h, c_.width};
    if (uid == kW) dims = {c_.k, c_.c / c_.groups, c_.r, c_.s};
    if (uid == kBias) dims = {1, c_.k, 1, 1};
    TN_TRY(made, Descriptor::make(cudnn_, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    TN_CHECK(made.set_one(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid));
    TN_CHECK(made.set_one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
                          is_virtual ? CUDNN_DATA_FLOAT : data_type(c_.dtype)));
    TN_CHECK(made.set_numbers(CUDNN_ATTR_TENSOR_DIMENSIONS, dims));
    TN_CHECK(made.set_numbers(CUDNN_ATTR_TENSOR_STRIDES, strides_of(dims, c_.channels_last)));
    TN_CHECK(made.set_one(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{16}));
    TN_CHECK(made.set_one(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual));
    TN_CHECK(made.finish());
    parts_.push_back(std::move(made));
    return parts_.back().raw();
  }

  Result<cudnnBackendDescriptor_t> window() {
    TN_TRY(made, Descriptor::make(cudnn_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
    TN_CHECK(
        made.set_one(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
    TN_CHECK(made.set_one(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                          CUDNN_CROSS_CORRELATION));
    TN_CHECK(made.set_one(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2}));
    auto numbers = [](const int64_t (&from)[2]) { return std::vector<int64_t>(from, from + 2); };
    TN_CHECK(made.set_numbers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, numbers(c_.pad)));
    TN_CHECK(made.set_numbers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, numbers(c_.pad)));
    TN_CHECK(made.set_numbers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, numbers(c_.stride)));
    TN_CHECK(made.set_numbers(CUDNN_ATTR_CONVOLUTION_DILATIONS, numbers(c_.dilation)));
    TN_CHECK(made.finish());
    parts_.push_back(std::move(made));
    return parts_.back().raw();
  }

  struct Names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
  };
  static Names names_of(ConvolutionKind kind) {
    switch (kind) {
      case ConvolutionKind::kInputGrad:
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
      case ConvolutionKind::kWeightGrad:
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
      default:
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    }
  }

  Status add_convolution() {
    Names name = names_of(c_.kind);
    TN_TRY(made, Descriptor::make(cudnn_, name.operation));
    TN_TRY(window, this->window());
    TN_TRY(x, tensor(kX));
    TN_TRY(w, tensor(kW));
    TN_TRY(y, tensor(c_.bias >= 0 || c_.z >= 0 || c_.relu ? kProduct : kY));
    for (auto [attribute, child] :
         {std::pair(name.window, window), {name.x, x}, {name.w, w}, {name.y, y}})
      TN_CHECK(made.set_one(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, child));
    TN_CHECK(made.set_one(name.alpha, CUDNN_TYPE_FLOAT, 1.0f));
    TN_CHECK(made.set_one(name.beta, CUDNN_TYPE_FLOAT, 0.0f));
    TN_CHECK(made.finish());
    operations_.push_back(std::move(made));
    last_ = y;
    return {};
  }

  // Of what the operations so far give; second: 0: there is no other operand.
  Status add_pointwise(cudnnPointwiseMode_t mode, int64_t second, int64_t out) {
    TN_TRY(how, Descriptor::make(cudnn_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
    TN_CHECK(how.set_one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode));
    TN_CHECK(how.set_one(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
    TN_CHECK(how.finish());
    TN_TRY(made, Descriptor::make(cudnn_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
    TN_CHECK(made.set_child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how));
    TN_CHECK(
        made.set_one(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, last_));
    if (second) {
      TN_TRY(b, tensor(second));
      TN_CHECK(
          made.set_one(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, b));
    }
    TN_TRY(y, tensor(out));
    TN_CHECK(made.set_one(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, y));
    TN_CHECK(made.finish());
    parts_.push_back(std::move(how));
    operations_.push_back(std::move(made));
    last_ = y;
    return {};
  }

  const Cudnn& cudnn_;
  const Convolution& c_;
  std::vector<Descriptor> parts_, operations_;
  cudnnBackendDescriptor_t last_ = nullptr;  // what the operations so far give
};

bool has_note(const Descriptor& config, const Cudnn& cudnn, cudnnBackendNumericalNote_t wanted) {
  Result<Descriptor> engine = Descriptor::make(cudnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (!engine.ok()) return false;
  std::vector<cudnnBackendDescriptor_t> raw{engine->raw()};
  if (!config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw).ok())
    return false;
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  if (!engine->get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, &notes).ok())
    return false;
  return std::find(notes.begin(), notes.end(), wanted) != notes.end();
}

// Ways to run the graph, the most promising first.
Result<std::vector<Descriptor>> configs_of(const Cudnn& cudnn,
                                           const Descriptor& graph,
                                           const Descriptor& device,
                                           cudnnBackendHeurMode_t mode) {
  TN_TRY(asked, Descriptor::make(cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  TN_CHECK(asked.set_child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  TN_CHECK(asked.set_one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode));
  TN_CHECK(asked.set_child(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device));
  TN_CHECK(asked.finish());
  TN_TRY(n, asked.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR));
  std::vector<Descriptor> out;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < std::min(n, kPlansTried); ++i) {
    TN_TRY(config, Descriptor::make(cudnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(config.raw());
    out.push_back(std::move(config));
  }
  TN_CHECK(asked.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw));
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(raw.size()), out.end());
  return out;
}

Result<Descriptor> plan_of(const Cudnn& cudnn, const Descriptor& config, const Descriptor& device) {
  TN_TRY(plan, Descriptor::make(cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  TN_CHECK(plan.set_child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config));
  TN_CHECK(plan.set_child(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device));
  TN_CHECK(plan.finish());
  return std::move(plan);
}

}  // namespace

std::string form_of(const Convolution& c) {
  const char* kinds[] = {"convolution", "gradient by the input", "gradient by the weight"};
  std::string pads = cat(c.pad[0], "x", c.pad[1]), strides = cat(c.stride[0], "x", c.stride[1]);
  return cat(kinds[static_cast<int>(c.kind)], " of ", dtype_name(c.dtype), " [", c.n, ", ", c.c,
             ", ", c.h, ", ", c.width, "] with ", c.k, " kernels of ", c.r, "x", c.s, ", padding ",
             pads, ", strides ", strides, ", dilations ", c.dilation[0], "x", c.dilation[1], ", ",
             c.groups, " groups", c.channels_last ? ", channels last" : "",
             c.bias >= 0 ? ", bias" : "", c.z >= 0 ? ", residual" : "", c.relu ? ", relu" : "");
}

Result<ConvolutionGraph> ConvolutionGraph::make(const Cudnn& cudnn,
                                                const Convolution& form,
                                                bool tf32,
                                                const Descriptor& device) {
  Builder builder(cudnn, form);
  TN_TRY(graph, builder.operations());
  Status last;
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Result<std::vector<Descriptor>> configs = configs_of(cudnn, graph, device, mode);
    if (!configs.ok()) {
      last = std::move(configs).status();
      continue;
    }
    for (Descriptor& config : *configs) {
      bool is_exact = form.dtype != TN_F32 || tf32 ||
                      (!has_note(config, cudnn, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) &&
                       !has_note(config, cudnn, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
      if (!is_exact) continue;
      Result<Descriptor> plan = plan_of(cudnn, config, device);
      if (!plan.ok()) {
        last = std::move(plan).status();
        continue;
      }
      std::vector<int64_t> bytes{0};
      TN_CHECK(plan->get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &bytes));
      if (bytes.at(0) > kMostWorkspace) continue;
      std::vector<Descriptor> kept = builder.take_parts();
      kept.push_back(std::move(graph));
      kept.push_back(std::move(config));
      return ConvolutionGraph(cudnn, std::move(kept), std::move(*plan),
                              static_cast<uint64_t>(bytes[0]), form);
    }
  }
  return unsupported(
      cat("cuda: cuDNN has no plan for a ", form_of(form), last.ok() ? "" : ": " + last.text()));
}

Status ConvolutionGraph::execute(cudnnHandle_t handle, const Addresses& at) const {
  std::vector<int64_t> uids{kX, kW, kY};
  std::vector<const void*> data{at.x, at.w, at.y};
  if (has_bias_) {
    uids.push_back(kBias);
    data.push_back(at.bias);
  }
  if (has_residual_) {
    uids.push_back(kZ);
    data.push_back(at.z);
  }
  TN_TRY(pack, Descriptor::make(*cudnn_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  TN_CHECK(pack.set_numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids));
  TN_CHECK(pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                    static_cast<int64_t>(data.size()), data.data()));
  TN_CHECK(pack.set_one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, at.workspace));
  TN_CHECK(pack.finish());
  return cudnn_->check(cudnn_->execute(handle, plan_.raw(), pack.raw()), "a convolution");
}

}  // namespace tenon::cuda
