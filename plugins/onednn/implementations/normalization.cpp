// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax, LayerNormalization, RMSNormalization, and BatchNormalization that nothing
// could fold. Sums are kept in f32 also when the data is bf16.

#include "handlers.hpp"
#include "kept.hpp"
#include "kernels/norm.h"
#include "lowering/epilogue.hpp"
#include "lowering/softmax_front.hpp"

namespace tenon::onednn {
namespace {

int64_t axis_of(const Node& node, const Value& value, int64_t fallback) {
  return positive_axis(node.integer("axis", fallback), value.dims.size());
}

}  // namespace

std::string refuse_softmax(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32) return "only f32";
  if (src.dims.empty() || src.dims.size() > 6) return "only 1 to 6 axes";
  return src.count() == 0 ? "empty tensor" : "";
}

namespace {

// The memory of a dense view as [outer, extent of the axis], for each of the `inner` elements
// behind.
View before_axis(View view, int64_t extent, int64_t inner) {
  view.dims = {view.count() / (extent * inner), extent};
  view.strides = {extent, 1};
  return view;
}

}  // namespace

void lower_softmax(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& value = lowering.graph().values[node.outputs[0]];
  const auto axis = static_cast<size_t>(axis_of(node, value, -1));
  SoftmaxFront front;
  front.softmax = index;
  if (axis + 1 == value.dims.size()) return lower_softmax_front(lowering, node.inputs[0], front);
  View src = lowering.read_real(node.inputs[0]);
  if (!is_dense(src)) src = lowering.read_row_major(node.inputs[0], lowering.real_type());
  View dst = src;
  dst.offset = 0;
  if (value.n_outputs > 0) dst.type = ElementType::kF32;
  dst.buffer = lowering.scratch(dst.bytes());
  const int64_t extent = src.dims[axis];
  const int64_t inner = extent == 1 ? 1 : src.strides[axis];
  lowering.add_step(softmax_step(node, front, before_axis(src, extent, inner),
                                 before_axis(dst, extent, inner), nullptr, inner));
  lowering.set_view(node.outputs[0], dst);
}

std::string refuse_layer_norm(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32 || src.count() == 0) return "only f32 that is not empty";
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    bool is_stored = node.outputs[i] != kNone;
    if (is_stored && graph.values[node.outputs[i]].type != ElementType::kF32) return "only f32";
  }
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis_of(node, src, -1)); i < src.dims.size(); ++i) {
    inner *= src.dims[i];
  }
  for (int input : {node.input(1), node.input(2)}) {
    if (input != kNone && graph.values[input].count() != inner) return "scales that broadcast";
  }
  return {};
}

// QuantizeLinear nodes behind the result, or behind its product with a known row, become further
// results of the same pass.
class LayerNormBuilder {
 public:
  LayerNormBuilder(Lowering& lowering, int index)
      : lowering_(lowering), graph_(lowering.graph()), index_(index), node_(graph_.nodes[index]) {}

  void build() {
    const Value& value = graph_.values[node_.outputs[0]];
    View src = lowering_.read_row_major(node_.inputs[0], lowering_.read_real(node_.inputs[0]).type);
    kernels::NormArgs args;
    args.src.type = src.type;
    args.n = 1;
    for (size_t i = static_cast<size_t>(axis_of(node_, value, -1)); i < value.dims.size(); ++i) {
      args.n *= value.dims[i];
    }
    args.rows = value.count() / args.n;
    args.epsilon = static_cast<float>(node_.real("epsilon", 1e-5));
    if (node_.op == "RMSNormalization") args.kind = kernels::Norm::kRms;
    find_results(value);
    step_ = {.name = node_.name, .kernel = "tenon:layer_norm", .always_succeeds = true};
    step_.flops = 8.0 * static_cast<double>(value.count());
    step_.bytes = static_cast<double>(src.bytes());
    step_.places = {place_of(src), row_place(1)};
    bool has_beta = node_.input(2) != kNone;
    if (has_beta) step_.places.push_back(row_place(2));
    const int factors = results_.back().factors;
    if (factors != kNone)
      step_.places.push_back(place_of(lowering_.read_row_major(factors, ElementType::kF32)));
    const std::vector<Place> scales(step_.places.begin() + 1, step_.places.end());
    for (size_t i = 0; i < results_.size(); ++i) {
      kernels::Target& target = i == 0 ? args.dst : args.dst2;
      target.type = results_[i].type;
      target.quant = results_[i].quant;
      View dst{.type = target.type, .dims = value.dims, .strides = row_major_strides(value.dims)};
      bool in_place = i == 0 && lowering_.may_overwrite(src, dst, index_, scales);
      dst.buffer = in_place ? src.buffer : lowering_.scratch(dst.bytes());
      step_.places.push_back(place_of(dst));
      step_.bytes += static_cast<double>(dst.bytes());
      for (int result : results_[i].values)
        lowering_.set_view(result, dst);
    }
    Extras extras{has_beta, factors != kNone, results_.size() > 1, add_statistic(1),
                  add_statistic(2)};
    step_.kernel_function = caller(args, extras);
    lowering_.add_step(std::move(step_));
  }

 private:
  struct Extras {  // what there is beside src, gamma and dst
    bool has_beta;
    bool has_factors;
    bool has_second;
    bool has_mean;
    bool has_deviation;
  };
  struct Result {
    ElementType type;
    kernels::Quant quant;
    std::vector<int> values;
    int factors = kNone;  // [n], in front of the quantization
  };
  struct Rounding {
    int quantize = kNone;
    int factors = kNone;
    int product = kNone;  // the node of the factors
  };

  // The QuantizeLinear that a user of the result is or leads to.
  Rounding rounding_of(int user, const Value& value) const {
    Rounding found{.quantize = user};
    const Node& node = graph_.nodes[user];
    if (node.op == "Mul") {
      found.product = user;
      found.factors = node.inputs[graph_.values[node.inputs[0]].data != nullptr ? 0 : 1];
      found.quantize = graph_.only_user(node.outputs[0]);
      const Value& row = graph_.values[found.factors];
      const bool is_row = row.data != nullptr && row.type == ElementType::kF32 &&
                          !row.dims.empty() && row.count() == value.dims.back() &&
                          row.dims.back() == row.count() && is_over_last_axis(value) &&
                          graph_.values[node.outputs[0]].dims == value.dims;
      if (!is_row || lowering_.is_done(user)) return {};
    }
    const bool is_quantize = found.quantize != kNone && !lowering_.is_done(found.quantize) &&
                             graph_.nodes[found.quantize].op == "QuantizeLinear";
    return is_quantize ? found : Rounding{};
  }
  bool is_over_last_axis(const Value& value) const {
    return axis_of(node_, value, -1) + 1 == static_cast<int64_t>(value.dims.size());
  }

  void find_results(const Value& value) {
    bool stays_real = value.n_outputs > 0;
    std::vector<Result> integers;
    std::vector<int> quantizes;
    for (int user : value.users) {
      const Rounding found = rounding_of(user, value);
      std::optional<kernels::Quant> quant;
      if (found.quantize != kNone) quant = tensor_quant(lowering_, graph_.nodes[found.quantize]);
      if (!quant) {
        stays_real = true;
        continue;
      }
      const int result = graph_.nodes[found.quantize].outputs[0];
      ElementType type = graph_.values[result].type;
      bool fits =
          integers.empty() || (integers[0].type == type && is_same(integers[0].quant, *quant) &&
                               integers[0].factors == found.factors);
      if (!fits) {  // a third form is made from the floating-point numbers
        stays_real = true;
        continue;
      }
      if (integers.empty()) integers.push_back({type, *quant, {}, found.factors});
      integers[0].values.push_back(result);
      quantizes.push_back(found.quantize);
      if (found.product != kNone) quantizes.push_back(found.product);
    }
    for (int done : quantizes)
      lowering_.mark_done(done);
    if (stays_real || integers.empty()) {
      ElementType type = value.n_outputs > 0 ? ElementType::kF32 : lowering_.real_type();
      results_.push_back({type, {}, {node_.outputs[0]}});
    }
    results_.insert(results_.end(), integers.begin(), integers.end());
  }

  // Mean or inverse deviation of each row, where the graph wants them.
  bool add_statistic(size_t output) {
    if (output >= node_.outputs.size() || node_.outputs[output] == kNone) return false;
    int value = node_.outputs[output];
    View made =
        lowering_.make(value, ElementType::kF32, row_major_strides(graph_.values[value].dims));
    step_.places.push_back(place_of(made));
    return true;
  }

  Place row_place(int input) {
    return place_of(lowering_.read_row_major(node_.inputs[input], ElementType::kF32));
  }

  static KernelFunction caller(const kernels::NormArgs& args, Extras extras) {
    return [args, extras](const kernels::Context& context, void* const* pointers) -> const char* {
      kernels::NormArgs call = args;
      call.src.data = *pointers++;
      call.gamma = static_cast<const float*>(*pointers++);
      if (extras.has_beta) call.beta = static_cast<const float*>(*pointers++);
      if (extras.has_factors) call.factors = static_cast<const float*>(*pointers++);
      call.dst.data = *pointers++;
      if (extras.has_second) call.dst2.data = *pointers++;
      if (extras.has_mean) call.mean = static_cast<float*>(*pointers++);
      if (extras.has_deviation) call.inv_std = static_cast<float*>(*pointers++);
      kernels::normalize(context, call);
      return nullptr;
    };
  }

  Lowering& lowering_;
  const Graph& graph_;
  const int index_;
  const Node& node_;
  std::vector<Result> results_;
  Step step_;
};

void lower_layer_norm(Lowering& lowering, int index) {
  LayerNormBuilder(lowering, index).build();
}

std::string refuse_batch_norm(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32 || src.count() == 0) return "only f32 that is not empty";
  return src.dims.size() < 2 || src.dims.size() > 5 ? "only 2 to 5 axes" : "";
}

namespace {

// The Relu that alone reads the result.
int relu_behind(const Graph& graph, const Node& node) {
  int user = graph.only_user(node.outputs[0]);
  return user != kNone && graph.nodes[user].op == "Relu" ? user : kNone;
}

}  // namespace

void lower_batch_norm(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  if (node.integer("training_mode", 0) != 0) return lower_batch_norm_training(lowering, index);
  View src = lowering.read_real(node.inputs[0]);
  Dims strides = channels_last_strides(src.dims);
  if (!is_row_major(src) || src.type != ElementType::kF32) {
    src = lowering.read(node.inputs[0], src.type, strides);
  }
  View dst = src;
  dst.offset = 0;
  dst.buffer = lowering.scratch(dst.bytes());
  dnnl::memory::desc desc = descriptor(src);
  dnnl::memory::desc row = vector_descriptor(src.dims[1]);
  using Flags = dnnl::normalization_flags;
  Flags flags = Flags::use_scale | Flags::use_shift | Flags::use_global_stats;
  int relu = relu_behind(lowering.graph(), node);
  if (relu != kNone) flags = flags | Flags::fuse_norm_relu;
  dnnl::batch_normalization_forward::primitive_desc pd(
      lowering.engine(), dnnl::prop_kind::forward_inference, desc, desc,
      static_cast<float>(node.real("epsilon", 1e-5)), flags, new_attr());
  auto row_place = [&](int input) {
    return place_of(lowering.read_row_major(node.inputs[input], ElementType::kF32));
  };
  lowering.add_primitive<dnnl::batch_normalization_forward>(
      node.name, pd,
      {{DNNL_ARG_SRC, place_of(src), desc},
       {DNNL_ARG_DST, place_of(dst), desc},
       {DNNL_ARG_SCALE, row_place(1), row},
       {DNNL_ARG_SHIFT, row_place(2), row},
       {DNNL_ARG_MEAN, row_place(3), row},
       {DNNL_ARG_VARIANCE, row_place(4), row}},
      2.0 * static_cast<double>(src.count()));
  if (relu != kNone) lowering.mark_done(relu);
  int result = relu == kNone ? node.outputs[0] : lowering.graph().nodes[relu].outputs[0];
  lowering.set_view(result, dst);
}

}  // namespace tenon::onednn
