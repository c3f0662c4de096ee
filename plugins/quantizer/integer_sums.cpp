// SPDX-License-Identifier: Apache-2.0
// Products and sums in integers.
#include <algorithm>
#include <limits>

#include "tenon/sdk/alike.hpp"

#include "integer_rules.hpp"
#include "repeated.hpp"
#include "role.hpp"

namespace tenon::quantizer {
namespace {

// A known number of more axes than what stands beside it would give its own to the result.
bool keeps_rank(Node node, Value from) {
  const Type made = node.output().type(), given = from.type();
  return made.ranked && given.ranked && made.rank() == given.rank();
}

bool are_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

// The one finite number beside input i; nothing where there is another thing.
std::optional<double> number_beside(Node node, uint64_t i) {
  const std::vector<double> found = numbers_of(node.input(1 - i));
  if (found.size() != 1 || !std::isfinite(found[0]) || !keeps_rank(node, node.input(i)))
    return std::nullopt;
  return found[0];
}

}  // namespace

// The integers as the products have them: [k, n] for matrices.
Status Rewriting::product(Node node) {
  Role role = role_of(node);
  const bool is_conv = node.is("Conv");
  const Integers* x = known(node.input(0));
  if (!x) return {};
  if (!x->is_stored()) return refuse(node, "its input is a sum that was not rounded to 8 bits");
  std::optional<Known> w = known_of(node.input(1));
  if (!w || w->numbers.dtype() != TN_I8 || role.products.empty())
    return refuse(node, "its weight is no int8 constant with zero point 0");
  if (node.is("Gemm") && (node.attr_float("alpha", 1) != 1 || node.attr_float("beta", 1) != 1 ||
                          node.attr_int("transA") != 0))
    return refuse(node, "alpha, beta or transA");
  const int64_t axis = role.products[0].axis;
  if (w->scale.size() > 1 && w->axis != axis) return refuse(node, "scales along another axis");
  if (!is_conv && w->numbers.type().rank() != 2) return refuse(node, "its weight is no matrix");
  Value integers = w->numbers;
  if (node.is("Gemm") && node.attr_int("transB") != 0) {
    TN_TRY(flipped, transposed(edit_, integers));
    integers = flipped;
  }
  Builder& b = n_.builder();
  if (!node.output().type().ranked) return refuse(node, "the rank of its result is not known");
  TN_TRY(zero, edit_.constant<uint8_t>(x->value.dtype(), {}, {static_cast<uint8_t>(x->zero)}));
  std::vector<Value> inputs{x->value, integers, zero};
  Node made = is_conv
                  ? b.node({.type = "ConvInteger", .inputs = inputs, .attrs = attributes_of(node)})
                  : b.node({.type = "MatMulInteger", .inputs = inputs});
  if (!made) return n_.status();
  return finish_product(node, *x, *w, axis, made.output());
}

Status Rewriting::finish_product(
    Node node, const Integers& x, const Known& w, int64_t axis, Value sums) {
  Builder& b = n_.builder();
  const size_t rank = node.output().type().rank();
  Integers out;
  out.axis = node.is("Conv") ? 1 : static_cast<int64_t>(rank) - 1;
  const Type type = w.numbers.type();
  const auto channels = static_cast<size_t>(type.dims[static_cast<size_t>(axis)]);
  for (size_t c = 0; c < channels; ++c)
    out.scale.push_back(x.scale[0] * (w.scale.size() == 1 ? w.scale[0] : w.scale[c]));
  out.value = b.cast(sums, TN_I64);
  out.most = {x.most[0] * 127 * static_cast<double>(type.elements()) /
              static_cast<double>(channels)};
  if (Value bias = node.input(2)) {
    const std::vector<double> steps = in_steps(bias, out.scale);
    if (steps.empty()) return refuse(node, "its bias is not one known number for each channel");
    std::vector<int64_t> summands;
    out.most.assign(channels, out.most[0]);
    for (size_t c = 0; c < channels; ++c) {
      if (!(std::abs(steps[c]) <= std::numeric_limits<int32_t>::max()))
        return refuse(node, cat("its bias in steps of channel ", c, "'s scale, ", out.scale[c],
                                ", is no int32"));
      summands.push_back(static_cast<int64_t>(steps[c]));
      out.most[c] += std::abs(steps[c]);
    }
    out.value = b.add(out.value, n_.numbers(summands, out.axis, rank));
  }
  known_[node.output().id] = out;
  return {};
}

Status Rewriting::add(Node node) {
  const Integers *x = known(node.input(0)), *y = known(node.input(1));
  if (!x && !y) return {};
  if (x && y) {
    known_[node.output().id] = n_.add(*x, *y);
    return {};
  }
  Value other = node.input(x ? 1 : 0);
  const std::vector<double> numbers = numbers_of(other);
  if (numbers.empty()) return refuse(node, "one of its inputs is float");
  if (!are_finite(numbers)) return refuse(node, "a summand is not finite");
  known_[node.output().id] = n_.add(x ? *x : *y, numbers, other.type().dims);
  return {};
}

Status Rewriting::bound(Node node) {
  const std::vector<Value> inputs = node.inputs();
  if (std::none_of(inputs.begin(), inputs.end(), [&](Value v) { return known(v) != nullptr; }))
    return {};
  if (inputs.size() != 2) return refuse(node, "it reads another count of values than two");
  const Integers *x = known(inputs[0]), *y = known(inputs[1]);
  if (x && y) return move(node);
  const std::optional<double> number = number_beside(node, x ? 0 : 1);
  if (!number) return refuse(node, "its bound is not one known number");
  constexpr double kNone = std::numeric_limits<double>::infinity();
  known_[node.output().id] =
      node.is("Max") ? n_.clip(x ? *x : *y, *number, kNone) : n_.clip(x ? *x : *y, -kNone, *number);
  return {};
}

Status Rewriting::factor(Node node) {
  const Integers *x = known(node.input(0)), *y = known(node.input(1));
  if (!x && !y) return {};
  const bool is_mul = node.is("Mul");
  std::optional<double> number;
  if (!y || (!x && is_mul)) number = number_beside(node, x ? 0 : 1);
  if (!number || *number <= 0) return table(node);
  Integers out = n_.wide(x ? *x : *y);
  for (double& scale : out.scale)
    scale = is_mul ? scale * *number : scale / *number;
  known_[node.output().id] = out;
  return {};
}

Status Rewriting::clip(Node node) {
  const Integers* x = known(node.input(0));
  if (!x) return {};
  double low = 0, high = std::numeric_limits<double>::infinity();
  if (node.is("Clip")) {
    low = -high;
    for (uint64_t i : {1, 2}) {
      if (!node.input(i)) continue;
      const std::vector<double> bound = numbers_of(node.input(i));
      if (bound.size() != 1) return refuse(node, "computed bounds");
      (i == 1 ? low : high) = bound[0];
    }
  }
  known_[node.output().id] = n_.clip(*x, low, high);
  return {};
}

// Without axes, or with none of them: over all, where no attribute says otherwise.
Status Rewriting::mean(Node node) {
  const Integers* x = known(node.input(0));
  if (!x) return {};
  const Type type = x->value.type();
  if (!type.ranked) return refuse(node, "the rank of its input is not known");
  if (x->scale.size() > 1) return refuse(node, "it adds up sums with a scale for each channel");
  const auto rank = static_cast<int64_t>(type.rank());
  const bool is_pool = node.is("GlobalAveragePool");
  std::vector<int64_t> axes;
  if (!is_pool && node.input(1)) {
    if (!node.input(1).is_constant()) return refuse(node, "computed axes");
    for (double axis : numbers_of(node.input(1)))
      axes.push_back(positive_axis(static_cast<int64_t>(axis), type.rank()));
  }
  const bool are_open = axes.empty() && (is_pool || node.attr_int("noop_with_empty_axes") == 0);
  for (int64_t d = is_pool ? 2 : 0; are_open && d < rank; ++d)
    axes.push_back(d);
  double count = 1;
  for (int64_t axis : axes) {
    const int64_t extent = type.dims.at(static_cast<size_t>(axis));
    if (extent < 1) return refuse(node, "extents that are not known");
    count *= static_cast<double>(extent);
  }
  const bool keeps = is_pool || node.attr_int("keepdims", 1) != 0;
  known_[node.output().id] = n_.mean(*x, axes, keeps, count);
  return {};
}

}  // namespace tenon::quantizer
