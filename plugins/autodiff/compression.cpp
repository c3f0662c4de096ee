// SPDX-License-Identifier: Apache-2.0
// q = floor((x - min) / s + u), s = (max - min) / 255, u uniform in [0, 1); x' = q s + min. The
// mean of x' over draws is x, its variance at most s^2 / 4 (Chen et al. 2021, "ActNN",
// section 3.1). The u of a tensor are frac(r_g + c_j) by group g and place j: any two of them are
// independent of each other, which is all that the variance of a sum asks for, from rows + columns
// draws.
#include "compression.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "joint.hpp"

namespace tenon::autodiff {
namespace {

constexpr int64_t kLeastGroup = 32;
constexpr double kCodes = 255;
constexpr double kLeastStep = 1e-30;  // of a group whose numbers are all the same

}  // namespace

int64_t Compression::group_of(int64_t elements, int64_t most) {
  for (int64_t group = std::min(most, elements); group >= kLeastGroup; --group)
    if (elements % group == 0) return group;
  return 0;
}

int64_t Compression::n_draws(const std::vector<Form>& values) {
  std::set<int64_t> groups;
  int64_t n = 0;
  for (auto [elements, group] : values) {
    n += elements / group;
    if (groups.insert(group).second) n += group;
  }
  return n;
}

Compression::Compression(Builder& builder, Value key, int64_t n_draws) : b_(builder) {
  if (n_draws == 0) return;
  Node made = b_.node({.type = "Random", .inputs = {b_.ints({n_draws}), key}, .domain = "tenon"});
  if (made) draws_ = made.output();
}

Value Compression::draw(const std::vector<int64_t>& shape) {
  int64_t n = shape[0] * shape[1], from = std::exchange(used_, used_ + n);
  Value part = b_.op("Slice", {draws_, b_.ints({from}), b_.ints({from + n}), b_.ints({0})});
  return b_.reshape(part, shape);
}

Value Compression::column(int64_t group) {
  Value& made = columns_[group];
  if (!made) made = draw({1, group});
  return made;
}

Packed Compression::pack_codes(Value x, int64_t group) {
  Value wide = b_.cast(x, TN_F32);
  Value rows = b_.reshape(wide, {-1, group});  // [n, group]
  int64_t n = x.type().elements() / group;
  auto over_group = [&](std::string_view op) {
    return b_.op(op, {rows, b_.ints({1})}, {{"keepdims", 1}});
  };
  Value least = over_group("ReduceMin");
  Value range = b_.sub(over_group("ReduceMax"), least);
  Value step =
      b_.op("Max", {b_.mul(range, b_.number(1 / kCodes, TN_F32)), b_.number(kLeastStep, TN_F32)});
  Value sum = b_.add(draw({n, 1}), column(group));
  Value u = b_.sub(sum, b_.op("Floor", {sum}));
  Value scaled = b_.add(b_.div(b_.sub(rows, least), step), u);
  Value quantized =
      b_.op("Clip", {b_.op("Floor", {scaled}), b_.number(0, TN_F32), b_.number(kCodes, TN_F32)});
  Packed out{{b_.cast(quantized, TN_U8), step, least}};
  for (Value part : out.parts)
    if (part) out.bytes += bytes_of(part);
  return out;
}

Value Compression::unpack_codes(const std::vector<Value>& parts, Value like) {
  Value rows = b_.add(b_.mul(b_.cast(parts[0], TN_F32), parts[1]), parts[2]);
  return b_.cast(b_.reshape(rows, like.type().dims), like.dtype());
}

Packed Compression::pack_half(Value x) {
  Value half = b_.cast(x, TN_BF16);
  return {{half}, half ? bytes_of(half) : 0};
}

Value Compression::unpack_half(Value part, Value like) {
  return b_.cast(b_.reshape(part, like.type().dims), like.dtype());
}

}  // namespace tenon::autodiff
