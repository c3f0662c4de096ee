// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a convolution or matrix product takes along: the chain of nodes that read only its result
// (bias, activation, residual, product with a gate, quantization), as post-ops of one primitive.
// The result is then the chain's last value and nothing between is stored.

#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lowering.hpp"

namespace tenon::onednn {

struct Eltwise {
  dnnl::algorithm algorithm = dnnl::algorithm::eltwise_relu;
  float alpha = 0;
  float beta = 0;
};
// The activation that a node of one real input is; nothing for others.
std::optional<Eltwise> find_eltwise(const Graph& graph, const Node& node);

struct EpilogueNode {
  int node = kNone;
  std::optional<Eltwise> eltwise = {};  // else binary:
  dnnl::algorithm binary = dnnl::algorithm::binary_add;
  int other = kNone;
};

// What a BatchNormalization of known numbers makes of each channel: x * factor + shift.
struct ChannelNorm {
  std::vector<double> factor, shift;
};
ChannelNorm channel_norm(Lowering& lowering, int norm);

struct Epilogue {
  int norm = kNone;  // a BatchNormalization node to be folded into a convolution's weights
  int bias = kNone;  // a constant [n_channels]
  std::vector<EpilogueNode> ops;
  std::vector<int> nodes;               // all that is absorbed
  int result = kNone;                   // the value that is stored
  std::optional<kernels::Quant> quant;  // of the result, when it is integer
  ElementType quant_type = ElementType::kU8;
};

// The chain behind output 0 of `node`; channel_axis is that of the bias. Marks nothing.
Epilogue find_epilogue(Lowering& lowering, int node, int channel_axis);
// The same of a node with a bias of its own: what looks like one is an ordinary operand.
Epilogue find_epilogue_with_bias(Lowering& lowering, int node, int channel_axis);
// Just the node's own output.
Epilogue empty_epilogue(const Lowering& lowering, int node);
void mark_absorbed(Lowering& lowering, const Epilogue& epilogue);

// What a post-op combines the result with. Until it is bound, a view without memory may say how it
// will be read.
struct PostOperand {
  int id = 0;  // DNNL_ARG_*
  int value = kNone;
  View view = {};
  bool is_read = false;  // Lowering::read brings it into the view's type and strides
  dnnl::memory::desc desc = {};
};
// An epilogue as a oneDNN primitive's description wants it.
struct Fused {
  std::string why_not;                     // it cannot be; then nothing else is filled in
  dnnl::primitive_attr attr = new_attr();  // post-ops, destination scale and zero point
  View dst;                                // in the memory of a summand, or in none yet
  std::vector<PostOperand> operands;
};
// dims: as the primitive sees the result (a product may be folded to two axes). is_transposed: it
// sees the last two axes swapped, the last having extent 1. sources: what it multiplies, which may
// not be overwritten.
struct FuseRequest {
  Dims result_strides = {};
  Dims dims = {};
  int channel_axis = 1;
  bool is_transposed = false;
  std::vector<Place> sources = {};
};
Fused fuse(const Lowering& lowering, const Epilogue& epilogue, const FuseRequest& request);
// Brings the operands to where the primitive reads them.
std::vector<Argument> bind(Lowering& lowering, const Epilogue& epilogue, const Fused& fused);

// Constant per-tensor parameters of a QuantizeLinear or DequantizeLinear node.
std::optional<kernels::Quant> tensor_quant(const Lowering& lowering, const Node& node);
// Whether a bias, if there is one, is known; its numbers then, nullptr where there is none.
bool has_known_bias(const Lowering& lowering, int bias);
const float* known_bias(Lowering& lowering, int bias);
// Whether quantized values of one are quantized values of the other, also where they became numbers
// between them: not where a scale is so large that some would be infinite.
inline bool is_same(const kernels::Quant& a, const kernels::Quant& b) {
  return a.scale == b.scale && a.zero_point == b.zero_point && std::isfinite(255.0F * a.scale);
}
// Clip and Relu alone are bounds of the result, whether before rounding or after it.
bool is_bounds(const EpilogueNode& op);
std::pair<float, float> bounds_of(const EpilogueNode& op);  // low, high
// The QuantizeLinear with such parameters that alone reads the value and waits; else kNone.
int only_quantize(const Lowering& lowering, int value);
// Lowers what makes `value` when that costs nothing: DequantizeLinear and Reshape, and in front of
// the value the operators of `views`. True when the value can be read now.
bool ensure_available(Lowering& lowering, int value, std::span<const std::string_view> views = {});

}  // namespace tenon::onednn
