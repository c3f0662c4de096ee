// SPDX-License-Identifier: Apache-2.0
// "tenon.Signs", which rewrites/join_signs makes: numbers as +scale or -scale, 32 a word, for the
// products and convolutions that alone read them.

#include "handlers.hpp"
#include "kernels/binary_product.h"

namespace tenon::onednn {

std::string refuse_signs(const Graph&, const Node&) {
  return {};
}

void lower_signs(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& dims = graph.values[node.inputs[0]].dims;
  const int64_t axis = node.integer("axis", 1);
  const bool is_image = axis == 1 && dims.size() > 2;
  const Dims strides = is_image ? channels_last_strides(dims) : row_major_strides(dims);
  const View src = lowering.read(node.inputs[0], ElementType::kF32, strides);
  const int64_t channels = dims[static_cast<size_t>(axis)];
  const int64_t rows = element_count(dims) / channels;
  std::vector<float> thresholds = lowering.constant_floats(node.inputs[1]);
  if (thresholds.size() == 1) thresholds.resize(static_cast<size_t>(channels), thresholds[0]);
  View bits{.type = ElementType::kU32, .dims = dims, .strides = strides};
  bits.quant.scale = static_cast<float>(node.real("scale", 1));
  const int64_t bytes = rows * kernels::words_of(channels) * 4;
  bits.buffer = lowering.scratch(bytes);
  Step step{.name = node.name, .kernel = "tenon:signs", .always_succeeds = true};
  step.bytes = static_cast<double>(src.bytes() + bytes);
  step.places = {place_of(src), place_of(bits), lowering.floats(thresholds)};
  step.kernel_function = [rows, channels](const kernels::Context& context,
                                          void* const* pointers) -> const char* {
    kernels::pack_signs(context,
                        {.src = static_cast<const float*>(pointers[0]),
                         .src_stride = channels,
                         .thresholds = static_cast<const float*>(pointers[2]),
                         .channels = channels,
                         .dst = static_cast<uint32_t*>(pointers[1])},
                        rows);
    return nullptr;
  };
  lowering.add_step(std::move(step));
  lowering.set_view(node.outputs[0], bits);
}

}  // namespace tenon::onednn
