// SPDX-License-Identifier: Apache-2.0
#include "softmax_front.hpp"

#include "epilogue.hpp"
#include "kernels/softmax.h"

namespace tenon::onednn {
namespace {

std::optional<float> constant_scalar(const Graph& graph, int value) {
  const Value& v = graph.values[value];
  if (v.data == nullptr || v.count() != 1 || v.type != ElementType::kF32) return std::nullopt;
  return *static_cast<const float*>(v.data);
}

bool takes_factor(const Graph& graph, const Node& node, int value, SoftmaxFront* front) {
  bool is_product = node.op == "Mul";
  if (!is_product && node.op != "Div") return false;
  bool is_first = node.inputs[0] == value;
  if (!is_product && !is_first) return false;
  std::optional<float> factor = constant_scalar(graph, node.inputs[is_first ? 1 : 0]);
  if (!factor || graph.values[node.outputs[0]].dims != graph.values[value].dims) return false;
  front->scale *= is_product ? *factor : 1.0F / *factor;
  return true;
}

bool takes_mask(Lowering& lowering, const Node& node, int value, SoftmaxFront* front) {
  const Graph& graph = lowering.graph();
  if (node.op != "Add" || front->mask != kNone || node.inputs[0] == node.inputs[1]) return false;
  int mask = node.inputs[node.inputs[0] == value ? 1 : 0];
  const Dims& dims = graph.values[value].dims;
  const Dims& mask_dims = graph.values[mask].dims;
  if (graph.values[node.outputs[0]].dims != dims || dims.size() > 4) return false;
  if (!ensure_available(lowering, mask) || lowering.view(mask).channels != nullptr) return false;
  const View& view = lowering.view(mask);
  bool is_row = mask_dims.empty() || mask_dims.back() == 1 || view.strides.back() == 1;
  if (!is_row) return false;
  front->mask = mask;
  return true;
}

bool is_last_axis(const Graph& graph, const Node& node) {
  int64_t rank = static_cast<int64_t>(graph.values[node.inputs[0]].dims.size());
  int64_t axis = node.integer("axis", -1);
  return axis == -1 || axis == rank - 1;
}

// [d0, d1, d2, n] of dims: leading axes are merged when there are more.
void fill_dims(const Dims& dims, kernels::SoftmaxArgs* args) {
  args->n = dims.back();
  size_t rank = dims.size();
  for (size_t i = 0; i + 1 < rank; ++i) {
    size_t slot = rank - 1 <= 3 ? 3 - (rank - 1) + i : (i + 4 < rank ? 0 : i - (rank - 4));
    args->dims[slot] *= dims[i];
  }
}

void fill_mask_strides(const View& mask, size_t rank, kernels::SoftmaxArgs* args) {
  size_t shift = 4 - rank + (rank - mask.dims.size());
  for (size_t i = 0; i < mask.dims.size(); ++i) {
    args->mask_strides[i + shift] = mask.dims[i] == 1 ? 0 : mask.strides[i];
  }
}

}  // namespace

std::optional<SoftmaxFront> find_softmax_front(Lowering& lowering, int scores) {
  const Graph& graph = lowering.graph();
  SoftmaxFront front;
  for (int value = scores;;) {
    int next = graph.only_user(value);
    // The first node may be the one that is being lowered, which is marked already.
    if (next == kNone || (value != scores && lowering.is_done(next))) return std::nullopt;
    const Node& user = graph.nodes[next];
    if (user.op == "Softmax" || user.op == "LogSoftmax") {
      if (!is_last_axis(graph, user)) return std::nullopt;
      front.softmax = next;
      return front;
    }
    bool taken = (front.mask == kNone && takes_factor(graph, user, value, &front)) ||
                 takes_mask(lowering, user, value, &front);
    if (!taken) return std::nullopt;
    front.nodes.push_back(next);
    value = user.outputs[0];
  }
}

Step softmax_step(const Node& node,
                  const SoftmaxFront& front,
                  const View& src,
                  const View& dst,
                  const View* mask,
                  int64_t inner) {
  kernels::SoftmaxArgs args;
  args.inner = inner;
  args.src.type = src.type;
  args.dst = {nullptr, dst.type, dst.quant};
  args.scale = front.scale;
  args.log = node.op == "LogSoftmax";
  fill_dims(src.dims, &args);
  Step step{.name = node.name, .kernel = "tenon:softmax", .always_succeeds = true};
  step.flops = 5.0 * static_cast<double>(src.count() * inner);
  step.bytes = static_cast<double>((src.bytes() + dst.bytes()) * inner);
  step.places = {place_of(src), place_of(dst)};
  const bool has_mask = mask != nullptr;
  if (has_mask) {
    args.mask.type = mask->type;
    args.mask.quant = mask->quant;
    fill_mask_strides(*mask, src.dims.size(), &args);
    step.places.push_back(place_of(*mask));
  }
  step.kernel_function = [args, has_mask](const kernels::Context& context,
                                          void* const* pointers) -> const char* {
    kernels::SoftmaxArgs call = args;
    call.src.data = pointers[0];
    call.dst.data = pointers[1];
    if (has_mask) call.mask.data = pointers[2];
    kernels::softmax(context, call);
    return nullptr;
  };
  return step;
}

void lower_softmax_front(Lowering& lowering, int scores, const SoftmaxFront& front) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[front.softmax];
  for (int absorbed : front.nodes)
    lowering.mark_done(absorbed);
  lowering.mark_done(front.softmax);
  View src = lowering.read_row_major(scores, lowering.read_real(scores).type);
  int result = node.outputs[0];
  View dst{.type = lowering.stored_type(result),
           .dims = src.dims,
           .strides = row_major_strides(src.dims)};
  if (int quantize = only_quantize(lowering, result); quantize != kNone) {
    lowering.mark_done(quantize);
    dst.quant = *tensor_quant(lowering, graph.nodes[quantize]);
    result = graph.nodes[quantize].outputs[0];
    dst.type = graph.values[result].type;
  }
  const View* mask = front.mask == kNone ? nullptr : &lowering.view(front.mask);
  const std::vector<Place> masks = mask ? std::vector{place_of(*mask)} : std::vector<Place>{};
  bool in_place = lowering.may_overwrite(src, dst, front.softmax, masks);
  dst.buffer = in_place ? src.buffer : lowering.scratch(dst.bytes());
  lowering.add_step(softmax_step(node, front, src, dst, mask));
  dst.quant = {};  // the value is the quantized values
  lowering.set_view(result, dst);
}

}  // namespace tenon::onednn
