// SPDX-License-Identifier: Apache-2.0
// GridSample from smaller operators, for its gradients and vmap: where sizes are known.
#include <span>

#include "corners.hpp"
#include "grid_sample.hpp"

namespace tenon::ops {
namespace {

// The same on tensors: for one axis the places [n, points] of the taps and their weights.
class TensorAxis {
 public:
  TensorAxis(Builder& b, const Rules& rules, int64_t size, uint32_t dtype)
      : b_(b), rules_(rules), size_(static_cast<double>(size)), dtype_(dtype) {}

  struct Taps {
    std::vector<Value> at, weight;
  };
  Taps taps(Value n) const {
    Value x = position(n), floor = b_.op("Floor", {x}), t = b_.sub(x, floor);
    if (rules_.mode == Mode::kNearest) return collect(b_.op("Round", {x}), 0, {number(1)});
    if (rules_.mode == Mode::kLinear) return collect(floor, 0, {b_.sub(number(1), t), t});
    std::vector<Value> weights;
    for (int k = -1; k <= 2; ++k)
      weights.push_back(cubic_of(b_.op("Abs", {b_.sub(t, number(k))}), k == 0 || k == 1));
    return collect(floor, -1, weights);
  }

 private:
  Value number(double x) const { return b_.number(x, dtype_); }
  double low() const { return rules_.corners ? 0 : -0.5; }
  Value clamped(Value x) const { return b_.op("Clip", {x, number(0), number(size_ - 1)}); }
  // A wave that rises and falls between the two edges.
  Value reflected(Value x) const {
    double range = rules_.corners ? size_ - 1 : size_;
    if (range <= 0) return b_.mul(x, number(0));
    Value away = b_.sub(x, number(low()));
    Value turns = b_.op("Floor", {b_.div(away, number(2 * range))});
    Value rest = b_.sub(away, b_.mul(turns, number(2 * range)));
    return b_.sub(number(low() + range), b_.op("Abs", {b_.sub(rest, number(range))}));
  }
  Value position(Value n) const {
    Value moved = b_.add(n, number(1));
    Value x = rules_.corners ? b_.mul(b_.div(moved, number(2)), number(size_ - 1))
                             : b_.div(b_.sub(b_.mul(moved, number(size_)), number(1)), number(2));
    if (rules_.mode == Mode::kNearest) x = b_.op("Round", {x});
    if (rules_.padding == Padding::kZeros) return x;
    if (rules_.padding == Padding::kReflection) return reflected(x);
    if (rules_.mode == Mode::kCubic) return x;  // its taps alone stop at the border
    Value above = b_.op("GreaterOrEqual", {x, number(low())});
    double high = low() + (rules_.corners ? size_ - 1 : size_);
    Value inside = b_.op("And", {above, b_.op("LessOrEqual", {x, number(high)})});
    return b_.op("Where", {inside, x, clamped(x)});
  }
  // Keys (1981) with a = -0.75, of a distance up to 1 or up to 2.
  Value cubic_of(Value t, bool near) const {
    const double a = -0.75;
    const double near_terms[] = {a + 2, -(a + 3), 0, 1}, far_terms[] = {a, -5 * a, 8 * a, -4 * a};
    const double* terms = near ? near_terms : far_terms;
    Value sum = number(terms[0]);
    for (int i = 1; i < 4; ++i)
      sum = b_.add(b_.mul(sum, t), number(terms[i]));
    return sum;
  }
  Taps collect(Value floor, int first, const std::vector<Value>& weights) const {
    Taps out;
    for (size_t k = 0; k < weights.size(); ++k) {
      Value at = b_.add(floor, number(first + static_cast<int>(k))), weight = weights[k];
      if (rules_.padding == Padding::kZeros) {
        Value inside = b_.op("Equal", {at, clamped(at)});
        weight = b_.op("Where", {inside, weight, number(0)});
      }
      if (rules_.padding == Padding::kReflection) at = b_.cast(reflected(at), TN_I64);
      out.at.push_back(b_.cast(clamped(b_.cast(at, dtype_)), TN_I64));
      out.weight.push_back(weight);
    }
    return out;
  }
  Builder& b_;
  const Rules& rules_;
  double size_;
  uint32_t dtype_;
};

}  // namespace

// Gathered pixels, weighted, for every choice of one tap per axis.
Result<std::vector<Value>> grid_sample_decompose(EditView edit, Node node) {
  TN_TRY(rules, rules_of(node));
  Builder b(edit);
  Type x = node.input(0).type(), grid = node.input(1).type(), y = node.output().type();
  if (!x.is_static() || !grid.is_static() || !y.is_static() || x.rank() < 3)
    return unsupported("GridSample: composite where all sizes are known");
  std::vector<int64_t> spatial(x.dims.begin() + 2, x.dims.end());
  int64_t points = element_count(std::span(grid.dims).subspan(1, spatial.size()));
  Value at, weight;
  std::vector<std::pair<Value, Value>> all{{}};  // flat places and weights so far
  for (size_t d = 0; d < spatial.size(); ++d) {
    auto coordinate = static_cast<double>(spatial.size() - 1 - d);
    Value n = b.op("Gather", {node.input(1), b.number(coordinate, TN_I64)}, {{"axis", -1}});
    n = b.cast(b.reshape(n, {x.dims[0], points}), x.dtype);
    TensorAxis::Taps taps = TensorAxis(b, rules, spatial[d], x.dtype).taps(n);
    std::vector<std::pair<Value, Value>> next;
    for (auto& [before, share] : all) {
      for (size_t k = 0; k < taps.at.size(); ++k) {
        Value size = b.number(static_cast<double>(spatial[d]), TN_I64);
        at = before ? b.add(b.mul(before, size), taps.at[k]) : taps.at[k];
        weight = share ? b.mul(share, taps.weight[k]) : taps.weight[k];
        next.emplace_back(at, weight);
      }
    }
    all = next;
  }
  Value flat = b.reshape(node.input(0), {x.dims[0], x.dims[1], element_count(spatial)}), sum;
  Value middle = b.ints({1});
  for (auto& [places, share] : all) {
    Value taken = pick(b, flat, places);
    bool plain = share.type().rank() == 0;
    taken = b.mul(taken, plain ? share : b.op("Unsqueeze", {share, middle}));
    sum = sum ? b.add(sum, taken) : taken;
  }
  Value out = b.reshape(sum, y.dims);
  TN_CHECK(b.status());
  return std::vector<Value>{out};
}

}  // namespace tenon::ops
