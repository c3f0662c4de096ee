// SPDX-License-Identifier: Apache-2.0
// Resize by oneDNN where ONNX's rule is oneDNN's: linear between half-pixel centres, and nearest by
// whole factors upwards, where all of ONNX's nearest modes agree. The rest is resample's.

#include <algorithm>
#include <vector>

#include "choice.hpp"
#include "handlers.hpp"
#include "lists.hpp"
#include "resample.hpp"

namespace tenon::onednn {

// What oneDNN's resampling computes.
static bool is_fast(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  const Value& dst = graph.values[node.outputs[0]];
  std::string rule = node.text("coordinate_transformation_mode", "half_pixel");
  if (src.dims.size() < 3 || src.dims.size() > 5) return false;
  if (src.dims[0] != dst.dims[0] || src.dims[1] != dst.dims[1]) return false;
  if (node.integer("antialias", 0) != 0 || node.integer("exclude_outside", 0) != 0) return false;
  if (!is_by_whole_sizes(graph, node)) return false;
  std::string mode = node.text("mode", "nearest");
  if (mode == "linear") return rule == "half_pixel";
  std::string nearest = node.text("nearest_mode", "round_prefer_floor");
  bool agrees = (rule == "asymmetric" && nearest == "floor") ||
                (rule == "half_pixel" && nearest.rfind("round", 0) == 0);
  if (mode != "nearest" || !agrees) return false;
  for (size_t i = 2; i < src.dims.size(); ++i) {
    if (dst.dims[i] % src.dims[i] != 0) return false;
  }
  return true;
}

std::string refuse_resize(const Graph& graph, const Node& node) {
  return refuse_resample(graph, node);
}

namespace {

// Whether the value is stored as 8-bit integers, with one scale or as what they are.
bool are_bytes(const Lowering& lowering, int value) {
  const View& found = lowering.view(value);
  const bool are_integers = found.type == ElementType::kU8 || found.type == ElementType::kS8;
  return are_integers && found.channels == nullptr &&
         (found.is_quantized() || lowering.graph().values[value].type == found.type);
}

// Channels-last. The nearest of quantized values is one of them: they stay as they are stored.
View read_source(Lowering& lowering, int value, bool is_linear) {
  const View found = lowering.view(value);
  const Dims strides = channels_last_strides(found.dims);
  if (are_bytes(lowering, value) && !is_linear)
    return lowering.read_stored(value, strides, found.type);
  return lowering.read(value, lowering.read_real(value).type, strides);
}

void build(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& value = lowering.graph().values[node.outputs[0]];
  const bool is_linear = node.text("mode", "nearest") == "linear";
  const View src = read_source(lowering, node.inputs[0], is_linear);
  View dst{.type = src.type, .dims = value.dims, .strides = channels_last_strides(value.dims)};
  dst.quant = src.quant;
  dst.buffer = lowering.scratch(dst.bytes());
  std::vector<float> factors;
  for (size_t i = 2; i < value.dims.size(); ++i) {
    factors.push_back(static_cast<float>(value.dims[i]) / static_cast<float>(src.dims[i]));
  }
  dnnl::memory::desc src_desc = descriptor(src);
  dnnl::memory::desc dst_desc = descriptor(dst);
  dnnl::resampling_forward::primitive_desc pd(
      lowering.engine(), dnnl::prop_kind::forward_inference,
      is_linear ? dnnl::algorithm::resampling_linear : dnnl::algorithm::resampling_nearest, factors,
      src_desc, dst_desc, new_attr());
  lowering.add_primitive<dnnl::resampling_forward>(
      node.name, pd,
      {{DNNL_ARG_SRC, place_of(src), src_desc}, {DNNL_ARG_DST, place_of(dst), dst_desc}},
      static_cast<double>(dst.count()) * (is_linear ? 7.0 : 0.0));
  lowering.set_view(node.outputs[0], dst);
}

struct ResizeSite {
  Lowering& lowering;
  int index;
};

// Whether rows are repeated for readers that take them as they lie. A Conv wants channels-last, and
// the source is smaller than the result.
bool repeats_rows(const ResizeSite& site) {
  const Graph& graph = site.lowering.graph();
  const Node& node = graph.nodes[site.index];
  const View& src = site.lowering.view(node.inputs[0]);
  const bool are_rows =
      src.type == ElementType::kF32 && is_row_major(src) && !is_channels_last(src);
  const std::vector<int>& users = graph.value(node.outputs[0]).users;
  const bool is_convolved = std::any_of(users.begin(), users.end(),
                                        [&](int user) { return graph.node(user).op == "Conv"; });
  return are_rows && node.text("mode", "nearest") == "nearest" && !is_convolved;
}

Offer offer_onednn(const ResizeSite& site) {
  const Graph& graph = site.lowering.graph();
  const Node& node = graph.nodes[site.index];
  const bool takes_integers =
      are_bytes(site.lowering, node.inputs[0]) && !is_row_major(site.lowering.view(node.inputs[0]));
  if (graph.values[node.inputs[0]].type != ElementType::kF32 && !takes_integers)
    return refused("neither f32 nor bytes whose channels lie side by side");
  if (!is_fast(graph, node)) return refused("coordinates or rounding that oneDNN does not have");
  if (repeats_rows(site)) return refused("rows of floats that are copied as they lie");
  return accepted([&site] { build(site.lowering, site.index); });
}

Offer offer_nearest(const ResizeSite& site) {
  const Node& node = site.lowering.graph().nodes[site.index];
  if (std::string why = refuse_nearest(site.lowering, node); !why.empty()) return refused(why);
  return accepted([&site] { lower_nearest(site.lowering, site.index); });
}

Offer offer_taps(const ResizeSite& site) {
  return accepted([&site] { lower_resample(site.lowering, site.index); });
}

constexpr Implementation<ResizeSite> kResize[] = {
    {"onednn", offer_onednn},
    {"nearest", offer_nearest},
    {"taps", offer_taps},
};

}  // namespace

Names resize_names() {
  return names_of(kResize);
}

void lower_resize(Lowering& lowering, int index) {
  choose<ResizeSite>(lowering, {lowering, index}, kResize);
}

}  // namespace tenon::onednn
