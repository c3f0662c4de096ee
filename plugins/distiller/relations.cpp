// SPDX-License-Identifier: Apache-2.0
#include "relations.hpp"

namespace tenon::distiller {
namespace {

Value sum(Precise& b, Value x, int64_t axis, bool keeps) {
  return b.op("ReduceSum", {x, b.ints({axis})}, {{"keepdims", keeps ? 1 : 0}});
}

// [N, places]
Value attention_map(Precise& b, Value x) {
  const auto channel = static_cast<int64_t>(channel_axis(x.type()));
  return unit(b, flat(b, sum(b, b.mul(x, x), channel, false)));
}

// Quadratic up to 1, linear beyond it, the mean over all numbers.
Value huber(Precise& b, Value x, Value y) {
  Value off = b.op("Abs", {b.sub(x, y)});
  Value near = b.op("Min", {off, b.number(1, off.dtype())});
  Value half = b.mul(b.mul(near, near), b.number(0.5, off.dtype()));
  return b.mean(b.add(half, b.sub(off, near)));
}

// x_j - x_i: [N, N, width]
Value pairs(Precise& b, Value x) {
  return b.sub(b.op("Unsqueeze", {x, b.ints({0})}), b.op("Unsqueeze", {x, b.ints({1})}));
}

// Distances over the mean of those that are not 0: [N, N].
Value distances(Precise& b, Value differences) {
  const uint32_t dtype = differences.dtype();
  Value squares = sum(b, b.mul(differences, differences), -1, false);
  Value apart = b.cast(b.op("Greater", {squares, b.number(0, dtype)}), dtype);
  Value lengths = b.op("Sqrt", {b.op("Max", {squares, b.number(kTiny, dtype)})});
  lengths = b.mul(lengths, apart);
  Value all = b.op("ReduceSum", {lengths}, {{"keepdims", 0}});
  Value count = b.op("ReduceSum", {apart}, {{"keepdims", 0}});
  Value mean = b.op("Div", {all, b.op("Max", {count, b.number(1, dtype)})});
  return b.op("Div", {lengths, b.op("Max", {mean, b.number(kTiny, dtype)})});
}

// Cosines at each sample between each two others: [N, N, N].
Value angles(Precise& b, Value differences) {
  Value directions = unit(b, differences);
  return b.op("MatMul", {directions, b.op("Transpose", {directions},
                                          {{"perm", std::vector<int64_t>{0, 2, 1}}})});
}

// Whether both have a vector for each of as many samples.
bool are_vectors(const Matched& pair) {
  Type a = pair.student.type(), t = pair.teacher.type();
  if (!a.ranked || !t.ranked || a.rank() < 2 || t.rank() < 2) return false;
  return a.dims[0] < 1 || t.dims[0] < 1 || a.dims[0] == t.dims[0];
}

// Products of all pairs of samples, each row at length 1: [N, N].
Value similarities(Precise& b, Value x) {
  Value rows = flat(b, x);
  Value transposed = b.op("Transpose", {rows}, {{"perm", std::vector<int64_t>{1, 0}}});
  return unit(b, b.op("MatMul", {rows, transposed}));
}

Value mean_squared_difference(Precise& b, Value x, Value y) {
  Value off = b.sub(x, y);
  return b.mean(b.mul(off, off));
}

}  // namespace

Result<Value> attention_loss(EditView edit, const Matched& pair, const MatchPlan&) {
  Type a = pair.student.type(), b_type = pair.teacher.type();
  bool fits = a.ranked && b_type.ranked && a.rank() == b_type.rank() && a.rank() > 2;
  if (fits) {
    const size_t channel = channel_axis(a);
    a.dims[channel] = b_type.dims[channel] = 1;
    fits = may_equal(a, b_type);
  }
  if (!fits)
    return invalid(text_of(pair) +
                   ": expected the same shape but for the channels, of rank 3 and up, for match "
                   "attention");
  Precise b(edit);
  Value loss = mean_squared_difference(b, attention_map(b, b.widened(pair.student, pair.teacher)),
                                       attention_map(b, b.widened(pair.teacher, pair.student)));
  TN_CHECK(b.status());
  return loss;
}

Result<Value> relation_loss(EditView edit, const Matched& pair, const MatchPlan& plan) {
  if (!are_vectors(pair))
    return invalid(text_of(pair) +
                   ": expected a vector for each sample of both, for match relation");
  Precise b(edit);
  Value x = pairs(b, flat(b, b.widened(pair.student, pair.teacher)));
  Value y = pairs(b, flat(b, b.widened(pair.teacher, pair.student)));
  Value loss = b.scaled(huber(b, distances(b, x), distances(b, y)), plan.distance);
  if (plan.angle > 0)
    loss = b.add(loss, b.scaled(huber(b, angles(b, x), angles(b, y)), plan.angle));
  TN_CHECK(b.status());
  return loss;
}

Result<Value> similarity_loss(EditView edit, const Matched& pair, const MatchPlan&) {
  if (!are_vectors(pair))
    return invalid(text_of(pair) +
                   ": expected a vector for each sample of both, for match similarity");
  Precise b(edit);
  Value loss = mean_squared_difference(b, similarities(b, b.widened(pair.student, pair.teacher)),
                                       similarities(b, b.widened(pair.teacher, pair.student)));
  TN_CHECK(b.status());
  return loss;
}

}  // namespace tenon::distiller
