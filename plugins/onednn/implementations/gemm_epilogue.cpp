// SPDX-License-Identifier: Apache-2.0
#include "gemm_epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tenon::onednn {
namespace {

using Op = kernels::EpilogueOp;

// Only what comes first: the bias.
Epilogue bias_alone(const Lowering& lowering, int node, const Epilogue& epilogue) {
  Epilogue alone = empty_epilogue(lowering, node);
  if (epilogue.bias == kNone) return alone;
  alone.bias = epilogue.bias;
  alone.nodes = {epilogue.nodes.front()};
  alone.result = lowering.graph().nodes[epilogue.nodes.front()].outputs[0];
  return alone;
}

std::optional<Op> activation(const Eltwise& eltwise) {
  using A = dnnl::algorithm;
  auto op = [&](Op::Kind kind) {
    return Op{.kind = kind, .alpha = eltwise.alpha, .beta = eltwise.beta};
  };
  switch (eltwise.algorithm) {
    case A::eltwise_clip:
      return op(Op::Kind::kClip);
    case A::eltwise_relu:
      return op(Op::Kind::kLeakyRelu);
    case A::eltwise_linear:
      return op(Op::Kind::kLinear);
    case A::eltwise_hardsigmoid:
      return op(Op::Kind::kHardSigmoid);
    case A::eltwise_hardswish:
      return op(Op::Kind::kHardSwish);
    case A::eltwise_swish:
      return op(Op::Kind::kSwish);
    case A::eltwise_logistic:
      return op(Op::Kind::kSigmoid);
    case A::eltwise_tanh:
      return op(Op::Kind::kTanh);
    case A::eltwise_gelu_erf:
      return op(Op::Kind::kGeluErf);
    case A::eltwise_gelu_tanh:
      return op(Op::Kind::kGeluTanh);
    default:
      return std::nullopt;
  }
}

class EpilogueBuilder {
 public:
  EpilogueBuilder(const Lowering& lowering, const GemmStep& step)
      : lowering_(lowering), step_(step) {}

  GemmEpilogue build(const Epilogue& epilogue) {
    GemmEpilogue made{.epilogue = epilogue};
    if (epilogue.quant && kernels::element_bytes(epilogue.quant_type) != 1)
      return take_bias(epilogue);
    if (std::all_of(epilogue.ops.begin(), epilogue.ops.end(), is_bounds)) {
      bound(made);
      return made;
    }
    if (is_residual(epilogue.ops)) {
      GemmOperand other;
      if (std::optional<Op> sum = combination(epilogue.ops[0], &other))
        return add_residual(made, *sum, other);
    }
    if (epilogue.ops.size() >= kernels::kMostEpilogueOps) return take_bias(epilogue);
    for (const EpilogueNode& op : epilogue.ops) {
      GemmOperand other;
      std::optional<Op> known = op.eltwise ? activation(*op.eltwise) : combination(op, &other);
      if (!known) return take_bias(epilogue);
      add(made, *known, other);
    }
    if (epilogue.quant)
      add(made, {.kind = Op::Kind::kLinear, .alpha = 1 / epilogue.quant->scale}, {});
    return made;
  }

 private:
  GemmEpilogue take_bias(const Epilogue& epilogue) const {
    return {.epilogue = bias_alone(lowering_, step_.node, epilogue)};
  }

  // Linear steps that follow each other are one.
  static void add(GemmEpilogue& made, const Op& op, const GemmOperand& other) {
    if (!made.ops.empty() && made.ops.back().kind == Op::Kind::kLinear &&
        op.kind == Op::Kind::kLinear) {
      Op& last = made.ops.back();
      last.beta = last.beta * op.alpha + op.beta;
      last.alpha *= op.alpha;
      return;
    }
    made.ops.push_back(op);
    made.others.push_back(other);
  }

  // A sum that only bounds follow is linear too: all in units of the result.
  static bool is_residual(const std::vector<EpilogueNode>& ops) {
    return !ops.empty() && !ops[0].eltwise && ops[0].binary == dnnl::algorithm::binary_add &&
           std::all_of(ops.begin() + 1, ops.end(), is_bounds);
  }
  static GemmEpilogue add_residual(GemmEpilogue& made, Op sum, const GemmOperand& other) {
    bound(made);
    const auto factor = static_cast<float>(1 / made.unit);
    if (sum.kind == Op::Kind::kLinear)
      sum.beta *= factor;
    else
      sum.alpha = factor;
    made.ops = {sum};
    made.others = {other};
    return made;
  }

  static void bound(GemmEpilogue& made) {
    if (made.epilogue.quant) made.unit = double{made.epilogue.quant->scale};
    for (const EpilogueNode& op : made.epilogue.ops) {
      if (!is_bounds(op)) continue;
      const auto [low, high] = bounds_of(op);
      // The later bound wins where they do not overlap.
      made.low = std::clamp(made.low, low, high);
      made.high = std::clamp(made.high, low, high);
    }
    made.low = static_cast<float>(double{made.low} / made.unit);
    made.high = static_cast<float>(double{made.high} / made.unit);
  }

  // One number for each column, side by side.
  bool is_row(const View& view, const Dims& result) const {
    const size_t shift = result.size() - view.dims.size();
    for (size_t i = 0; i < view.dims.size(); ++i) {
      if (view.dims[i] == 1) continue;
      return view.dims[i] == view.count() && view.strides[i] == 1 &&
             step_.dst_strides[i + shift] == 1 && result[i + shift] == view.dims[i];
    }
    return false;
  }

  // A sum or product with what is one number, one for each column, or as large as the result.
  std::optional<Op> combination(const EpilogueNode& op, GemmOperand* other) {
    const bool is_sum = op.binary == dnnl::algorithm::binary_add;
    if (!is_sum && op.binary != dnnl::algorithm::binary_mul) return std::nullopt;
    View view = lowering_.view(op.other);
    const bool is_real = holds_floats(view);
    if (!is_real && !holds_quantized(view)) return std::nullopt;
    const bool is_number = view.type == ElementType::kF32 && view.count() == 1;
    if (is_real && is_number && lowering_.is_constant_view(view)) {
      const float number = *static_cast<const float*>(lowering_.constant_data(view));
      return Op{.kind = Op::Kind::kLinear,
                .alpha = is_sum ? 1.0F : number,
                .beta = is_sum ? number : 0.0F};
    }
    Op made{.kind = is_sum ? Op::Kind::kAdd : Op::Kind::kMul, .alpha = 1};
    const Graph& graph = lowering_.graph();
    const bool is_full = view.dims == graph.values[graph.nodes[op.node].outputs[0]].dims;
    if (is_full) {
      view.strides = step_.dst_strides;
      made.row_stride = step_.dst_row;
      made.column_stride = 1;
    } else if (is_row(view, graph.values[graph.nodes[op.node].outputs[0]].dims)) {
      made.column_stride = 1;
    } else if (view.count() != 1) {
      return std::nullopt;
    }
    made.other.type = view.type;
    made.other.quant = view.quant;
    *other = {op.other, view, is_full, op.node};
    return made;
  }

  const Lowering& lowering_;
  const GemmStep& step_;
};

// Numbers that are known, one for each column.
const float* known_factors(const Lowering& lowering, const Op& op, const GemmOperand& other) {
  const bool is_row = op.row_stride == 0 && op.column_stride == 1;
  if (op.kind != Op::Kind::kMul || !is_row || op.other.type != ElementType::kF32) return nullptr;
  if (!lowering.is_constant_view(other.view)) return nullptr;
  return static_cast<const float*>(lowering.constant_data(other.view));
}

}  // namespace

EpilogueRows epilogue_rows(Lowering& lowering,
                           const GemmStep& step,
                           const GemmEpilogue& taken,
                           int64_t padded) {
  const int64_t groups = step.weights.groups, n = step.args.n;
  // No factor is infinite: it would make NaN of a sum that is 0. The largest one saturates as well.
  auto finite = [](double number) {
    constexpr double kMost = std::numeric_limits<float>::max();
    return static_cast<float>(std::isinf(number) ? number : std::clamp(number, -kMost, kMost));
  };
  auto row = [&](bool is_one_number, const auto& number) {
    std::shared_ptr<void> made = aligned_bytes(groups * padded * 4);
    auto* to = static_cast<float*>(made.get());
    size_t at = 0;
    for (int64_t g = 0; g < groups; ++g, to += padded) {
      if (is_one_number)
        std::fill_n(to, n, finite(number(0)));
      else
        std::generate_n(to, n, [&] { return finite(number(at++)); });
    }
    return lowering.make_constant(ElementType::kF32, {groups * padded}, made);
  };
  const View& weights = step.weights.view;
  const double left = step.src.is_quantized() ? double{step.src.quant.scale} : 1;
  const ChannelNorm& norm = step.norm;
  auto factor = [&](size_t i) { return norm.factor.empty() ? 1.0 : norm.factor[i]; };
  auto scale = [&](size_t i) {
    double right = weights.is_quantized() ? double{weights.quant.scale} : 1;
    if (weights.channels) right = double{weights.channels->scales[i]};
    return left * right * factor(i) / taken.unit;
  };
  const float* numbers = known_bias(lowering, step.bias != kNone ? step.bias : taken.epilogue.bias);
  auto shift = [&](size_t i) {
    const double bias = numbers != nullptr ? double{numbers[i]} * factor(i) : 0.0;
    return (norm.shift.empty() ? bias : bias + norm.shift[i]) / taken.unit;
  };
  return {row(!weights.channels && norm.factor.empty(), scale),
          row(numbers == nullptr && norm.shift.empty(), shift)};
}

void set_result(const GemmEpilogue& taken,
                const View& dst,
                int64_t dst_stride,
                kernels::ProductResult* to) {
  to->dst.type = dst.type;
  if (taken.epilogue.quant) to->dst.quant = *taken.epilogue.quant;
  to->dst_stride = dst_stride;
  to->low = taken.low;
  to->high = taken.high;
}

void shorten_gelu(std::vector<Op>& ops, const kernels::Target& dst) {
  constexpr float kLeastStep = 0.005F;  // fifty times the error
  const bool is_byte = kernels::element_bytes(dst.type) == 1;
  const bool is_coarse =
      dst.type == ElementType::kBf16 || (is_byte && dst.quant.scale >= kLeastStep);
  const bool has_factor = ops.size() == 2 && ops[1].kind == Op::Kind::kLinear && ops[1].beta == 0;
  if (!is_coarse || ops.empty() || ops[0].kind != Op::Kind::kGeluErf) return;
  if (ops.size() != 1 && !has_factor) return;
  const float factor = has_factor ? ops[1].alpha : 1.0F;
  ops = {Op{.kind = Op::Kind::kShortGelu, .alpha = factor}};
}

void tabulate_gelu(const Lowering& lowering, ElementType type, GemmEpilogue* taken) {
  constexpr float kLeastStep = 1.25e-4F;  // fifty times the error
  const std::vector<Op>& ops = taken->ops;
  const bool is_byte = kernels::element_bytes(type) == 1;
  if (ops.empty() || ops[0].kind != Op::Kind::kGeluErf) return;
  if (!is_byte && type != ElementType::kBf16) return;
  Op made{.kind = Op::Kind::kTableGelu, .alpha = 1};
  GemmOperand factors;
  float most = 1;
  for (size_t i = 1; i < ops.size(); ++i) {
    const float* numbers = known_factors(lowering, ops[i], taken->others[i]);
    if (ops[i].kind == Op::Kind::kLinear && ops[i].beta == 0) {
      made.alpha *= ops[i].alpha;
    } else if (numbers != nullptr && factors.value == kNone) {
      factors = taken->others[i];
      made.other = ops[i].other;
      made.column_stride = 1;
      for (int64_t k = 0; k < factors.view.count(); ++k)
        most = std::max(most, std::abs(numbers[k]));
    } else {
      return;
    }
  }
  // In a result of bytes alpha is in its steps.
  if (is_byte && std::abs(made.alpha) * most * kLeastStep > 1) return;
  taken->ops = {made};
  taken->others = {factors};
}

GemmEpilogue gemm_epilogue_of(const Lowering& lowering,
                              const GemmStep& step,
                              const Epilogue& epilogue) {
  return EpilogueBuilder(lowering, step).build(epilogue);
}

bool is_whole_and_alone(const GemmEpilogue& taken, const Epilogue& epilogue) {
  const bool is_alone = std::all_of(taken.others.begin(), taken.others.end(),
                                    [](const GemmOperand& other) { return other.value == kNone; });
  return is_alone && taken.epilogue.nodes == epilogue.nodes;
}

std::vector<Place> bind(Lowering& lowering, const GemmEpilogue& taken) {
  std::vector<Place> places;
  for (const auto& [value, view, is_read, node] : taken.others) {
    if (value == kNone)
      places.push_back({});
    else if (!is_read)
      places.push_back(place_of(view));
    else if (view.is_quantized())
      places.push_back(place_of(lowering.read_stored(value, view.strides, view.type)));
    else
      places.push_back(place_of(lowering.read(value, view.type, view.strides)));
  }
  return places;
}

int result_memory(Lowering& lowering,
                  const GemmEpilogue& taken,
                  const std::vector<Place>& others,
                  const std::vector<Place>& operands,
                  const View& dst) {
  for (size_t i = 0; i < others.size(); ++i) {
    const Op& op = taken.ops[i];
    if (op.kind != Op::Kind::kAdd || op.row_stride == 0) continue;
    const GemmOperand& other = taken.others[i];
    View summand = other.view;
    summand.buffer = others[i].buffer;
    summand.offset = others[i].offset;
    std::vector<Place> also_read = operands;
    for (size_t k = 0; k < others.size(); ++k)
      if (k != i) also_read.push_back(others[k]);
    if (lowering.may_overwrite(summand, dst, other.node, also_read)) return summand.buffer;
  }
  return lowering.scratch(dst.bytes());
}

}  // namespace tenon::onednn
