// SPDX-License-Identifier: Apache-2.0
#include "matrices.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon::linalg {

Stack::Stack(std::vector<int64_t> leading, int64_t n_rows, int64_t n_columns)
    : batch(std::move(leading)), rows(n_rows), columns(n_columns) {
  numbers.resize(static_cast<size_t>(element_count(batch) * rows * columns));
}

Result<Stack> read(const Call& call, uint64_t input) {
  std::span<const int64_t> shape = call.shape(input);
  if (shape.size() < 2)
    return invalid(cat("input ", input, ": expected matrices, got rank ", shape.size()));
  Stack made(std::vector<int64_t>(shape.begin(), shape.end() - 2), shape[shape.size() - 2],
             shape.back());
  TN_TRY(numbers, numbers_as<double>(call.in(input)));
  made.numbers = std::move(numbers);
  return made;
}

Status write(const Call& call, uint64_t i, const Stack& from, std::vector<int64_t> last) {
  last.insert(last.begin(), from.batch.begin(), from.batch.end());
  TN_TRY(out, call.out(i, call.dtype(0), last));
  if (call.dtype(0) == TN_F64) {
    std::copy(from.numbers.begin(), from.numbers.end(), data_of<double>(out));
  } else {
    std::transform(from.numbers.begin(), from.numbers.end(), data_of<float>(out),
                   [](double x) { return static_cast<float>(x); });
  }
  return {};
}

Result<double> factor_of(const Eigen::Ref<const Matrix>& x) {
  if (!x.allFinite()) return invalid("expected finite numbers, got an infinity or a NaN");
  // Neither 2^-2k nor 2^2k leaves the normal numbers.
  constexpr int kMost = 511;
  int exponent = 0;
  std::frexp(x.cwiseAbs().maxCoeff(), &exponent);
  return std::ldexp(1.0, std::clamp(exponent / 2, -kMost, kMost));
}

Axis axis_from_end(const Type& x, size_t i) {
  size_t at = x.rank() - i;
  return {x.dims[at], x.symbols.empty() ? "" : x.symbols[at]};
}

Axis lesser_axis(const Type& x) {
  Axis rows = axis_from_end(x, 2), columns = axis_from_end(x, 1);
  if (rows.size < 0 && columns.size < 0)
    return rows.symbol == columns.symbol && !rows.symbol.empty() ? rows : Axis{};
  if (rows.size < 0 || columns.size < 0) return {};
  return rows.size < columns.size ? rows : columns;
}

Type stacked(const Type& x, const std::vector<Axis>& last) {
  Type made(x.dtype, {x.dims.begin(), x.dims.end() - 2});
  made.symbols = x.symbols;
  made.symbols.resize(made.rank());
  for (const Axis& axis : last) {
    made.dims.push_back(axis.size);
    made.symbols.push_back(axis.symbol);
  }
  return made;
}

Status set_types(EditView edit, Node node, const std::vector<std::vector<Axis>>& last) {
  Type x = node.input(0).type();
  for (uint64_t i = 0; i < node.n_outputs() && i < last.size(); ++i) {
    Type made = x;
    if (x.ranked) made = stacked(x, last[i]);
    if (node.output(i)) TN_CHECK(edit.set_type(node.output(i), made));
  }
  return {};
}

Value transposed(Builder& b, Value x) {
  size_t rank = b.ranked(x, "linalg").rank();
  if (rank < 2) return {};
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return b.transpose(x, perm);
}
Value product(Builder& b, Value x, Value y) {
  return b.op("MatMul", {x, y});
}
Value solved(Builder& b, Value a, Value y) {
  Node made = b.node({.type = "Solve", .inputs = {a, y}, .domain = "tenon"});
  return made ? made.output() : Value{};
}
Value symmetric(Builder& b, Value x) {
  return b.mul(b.add(x, transposed(b, x)), b.number(0.5, x.dtype()));
}

Value pattern(Builder& b, Value x, int64_t n, double (*number)(int64_t row, int64_t column)) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < n * n; ++i)
    numbers.push_back(number(i / n, i % n));
  if (x.dtype() == TN_F64) return b.take(b.edit().constant<double>(TN_F64, {n, n}, numbers));
  std::vector<float> single(numbers.begin(), numbers.end());
  return b.take(b.edit().constant<float>(TN_F32, {n, n}, single));
}
Value diagonal_matrix(Builder& b, Value x, int64_t n) {
  Value eye = pattern(b, x, n, [](int64_t i, int64_t k) { return i == k ? 1.0 : 0.0; });
  return b.mul(eye, b.op("Unsqueeze", {x, b.ints({-1})}));
}
Value rounding_of(Builder& b, Value x, int64_t n) {
  const double epsilon = x.dtype() == TN_F64 ? std::numeric_limits<double>::epsilon()
                                             : std::numeric_limits<float>::epsilon();
  Value most = b.op("ReduceMax", {b.op("Abs", {x}), b.ints({-1})}, {{"keepdims", 1}});
  return b.mul(b.op("Unsqueeze", {most, b.ints({-1})}),
               b.number(static_cast<double>(n) * epsilon, x.dtype()));
}
Value reciprocal_or_zero(Builder& b, Value x, Value least) {
  Value zero = b.number(0, x.dtype()), one = b.number(1, x.dtype());
  Value none = b.op("LessOrEqual", {b.op("Abs", {x}), least});
  return b.op("Where", {none, zero, b.div(one, b.op("Where", {none, one, x}))});
}

Result<int64_t> known_size(Value x, size_t from_end, std::string_view who) {
  Type type = x.type();
  int64_t size = type.ranked && type.rank() >= from_end ? axis_from_end(type, from_end).size : -1;
  if (size >= 0) return size;
  return unsupported(cat(who, ": the sizes of the matrices must be known for a gradient"));
}

Status batch_as_matrices(Batching& b) {
  Node made = again(b, b.of(), {b.in(0)});
  TN_CHECK(b.status());
  for (uint64_t i = 0; i < b.of().n_outputs(); ++i)
    b.set(i, made.output(i));
  return {};
}

OpCost cubic_cost(Node node, double factor) {
  Type x = node.input(0).type();
  if (!x.is_static() || x.rank() < 2) return {};
  auto rows = static_cast<double>(x.dims[x.rank() - 2]),
       columns = static_cast<double>(x.dims.back());
  double bytes = static_cast<double>(bytes_of(x.dtype, x.elements()));
  for (Value y : node.outputs())
    if (y && y.type().is_static())
      bytes += static_cast<double>(bytes_of(y.type().dtype, y.type().elements()));
  return {factor * static_cast<double>(x.elements()) * std::min(rows, columns), bytes};
}

}  // namespace tenon::linalg
