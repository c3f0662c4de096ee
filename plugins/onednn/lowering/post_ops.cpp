// SPDX-License-Identifier: Apache-2.0
// An epilogue as post-ops of a oneDNN primitive, in two moves: what the primitive's description
// needs to know, and, once there is such a primitive, the operands themselves.

#include <algorithm>

#include "epilogue.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;

// Of an operand that broadcasts to dims; nothing where its axes do not fold as the result's do.
std::optional<Desc> aligned_descriptor(const View& view, const Dims& dims) {
  Dims padded(dims.size(), 1);
  if (view.count() != 1 && element_count(dims) == view.count()) {  // folded with the result
    return Desc(dims, dnnl_type(view.type), row_major_strides(dims));
  }
  size_t shift = dims.size() >= view.dims.size() ? dims.size() - view.dims.size() : 0;
  for (size_t i = 0; i < view.dims.size() && i + shift < dims.size(); ++i) {
    padded[i + shift] = view.dims[i];
  }
  if (view.dims.size() > dims.size()) padded.back() = view.dims.back();
  if (element_count(padded) != view.count()) return std::nullopt;
  return Desc(padded, dnnl_type(view.type), row_major_strides(padded));
}

struct PostOpBuilder {
  const Lowering& lowering;
  const Epilogue& epilogue;
  const FuseRequest& request;
  Fused& fused;
  dnnl::post_ops ops = {};
  bool has_sum = false;

  void eltwise(const Eltwise& e) { ops.append_eltwise(e.algorithm, e.alpha, e.beta); }

  void binary(dnnl::algorithm algorithm, PostOperand operand) {
    operand.id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops.len()) | DNNL_ARG_SRC_1;
    ops.append_binary(algorithm, operand.desc);
    fused.operands.push_back(std::move(operand));
  }

  // How many operands of the epilogue lie there: a factor may be a slice of the residual.
  int64_t readers_of(int buffer) const {
    return std::count_if(epilogue.ops.begin(), epilogue.ops.end(), [&](const EpilogueNode& op) {
      return op.other != kNone && lowering.buffer_of(op.other) == buffer;
    });
  }

  bool can_sum(const EpilogueNode& op, const View& other) const {
    if (has_sum || op.binary != dnnl::algorithm::binary_add) return false;
    const bool is_int8 = fused.dst.type == ElementType::kU8 || fused.dst.type == ElementType::kS8;
    return other.is_quantized() == is_int8 && other.dims == fused.dst.dims &&
           same_strides(other.dims, other.strides, fused.dst.strides) &&
           readers_of(other.buffer) == 1 &&
           lowering.may_overwrite(other, fused.dst, op.node, request.sources);
  }

  void add(const EpilogueNode& op) {
    if (op.eltwise) return eltwise(*op.eltwise);
    View other = lowering.view(op.other);
    if (can_sum(op, other)) {
      has_sum = true;
      float scale = other.is_quantized() ? other.quant.scale : 1.0F;
      ops.append_sum(scale, other.quant.zero_point, dnnl_type(other.type));
      fused.dst.buffer = other.buffer;
      return;
    }
    bool is_full = other.dims == fused.dst.dims;
    const Dims strides = is_full ? fused.dst.strides : row_major_strides(other.dims);
    bool in_place = same_strides(other.dims, other.strides, strides);
    if (in_place) other.strides = strides;  // of axes of one element too
    const bool is_read = !in_place || !(other.is_quantized() || is_real_type(other.type));
    if (is_read) other = {.type = lowering.real_type(), .dims = other.dims, .strides = strides};
    const View seen = request.is_transposed ? transposed(other) : other;
    const std::optional<Desc> desc = is_full && request.dims == seen.dims
                                         ? descriptor(seen)
                                         : aligned_descriptor(seen, request.dims);
    if (!desc) {
      fused.why_not = "an operand behind it does not fold as its result does";
      return;
    }
    PostOperand operand{.value = op.other, .view = other, .is_read = is_read, .desc = *desc};
    if (!other.is_quantized()) return binary(op.binary, std::move(operand));
    // x + s * (q - z) = s * ((x / s - z) + q);  x * s * q = (s * x) * q
    float scale = other.quant.scale;
    bool is_sum = op.binary == dnnl::algorithm::binary_add;
    float zero = static_cast<float>(other.quant.zero_point);
    eltwise({dnnl::algorithm::eltwise_linear, is_sum ? 1.0F / scale : scale, is_sum ? -zero : 0});
    binary(op.binary, std::move(operand));
    if (is_sum) eltwise({dnnl::algorithm::eltwise_linear, scale, 0});
  }

  // oneDNN rounds behind its zero point, where halves go to another neighbour than in front of it,
  // and a NaN becomes the largest s8: so this rounds, and bounds signed results, itself.
  void quantize(const kernels::Quant& quant) {
    const auto zero = static_cast<float>(quant.zero_point);
    eltwise({dnnl::algorithm::eltwise_linear, 1.0F / quant.scale, 0});
    if (quant.zero_point != 0) {
      eltwise({dnnl::algorithm::eltwise_round, 0, 0});
      fused.attr.set_zero_points_mask(DNNL_ARG_DST, 0);
    }
    if (fused.dst.type == ElementType::kS8)
      eltwise({dnnl::algorithm::eltwise_clip, -128.0F - zero, 127.0F - zero});
  }
};

}  // namespace

Fused fuse(const Lowering& lowering, const Epilogue& epilogue, const FuseRequest& request) {
  const Value& result = lowering.graph().values[epilogue.result];
  Fused fused;
  fused.dst.type = epilogue.quant ? epilogue.quant_type : lowering.stored_type(epilogue.result);
  fused.dst.dims = result.dims;
  fused.dst.strides = request.result_strides;
  PostOpBuilder builder{lowering, epilogue, request, fused};
  for (const EpilogueNode& op : epilogue.ops) {
    builder.add(op);
    if (!fused.why_not.empty()) return fused;
  }
  if (epilogue.quant) builder.quantize(*epilogue.quant);
  fused.attr.set_post_ops(builder.ops);
  return fused;
}

std::vector<Argument> bind(Lowering& lowering, const Epilogue& epilogue, const Fused& fused) {
  std::vector<Argument> arguments;
  for (const PostOperand& operand : fused.operands) {
    const View view = operand.is_read
                          ? lowering.read(operand.value, operand.view.type, operand.view.strides)
                          : operand.view;
    arguments.push_back({operand.id, place_of(view), operand.desc});
  }
  if (!epilogue.quant || epilogue.quant->zero_point == 0) return arguments;
  arguments.push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST,
                       lowering.integers({epilogue.quant->zero_point}),
                       vector_descriptor(1, dnnl::memory::data_type::s32)});
  return arguments;
}

}  // namespace tenon::onednn
