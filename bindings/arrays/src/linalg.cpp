// SPDX-License-Identifier: Apache-2.0
// Linear algebra by the array API's extension `linalg`. Matrices are the last two axes; leading
// axes count them. The factorisations are operators of the plugin `linalg`.
#include <algorithm>
#include <cmath>
#include <limits>

#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

constexpr const char* kDomain = "tenon";

Json json_of(const Value& x) {
  return {{"value", x.id}};
}
// Another function of the table.
Value by_name(Graph& graph,
              std::string_view name,
              const Json& positional,
              const Json& named = Json::object()) {
  return graph.value(graph.call(name, positional, named).front());
}
// The function of the same name outside of `linalg`.
Values same(Call& c) {
  Json positional = Json::array();
  for (size_t i = 0; i < c.n_parameters(); ++i)
    positional.push_back(c.json(i));
  return by_name(c.graph, c.row.op, positional);
}

const Value& matrices(const Value& x) {
  if (x.rank() < 2) invalid(cat("expected matrices, at least two axes, got ", x.text()));
  return x;
}
const Value& square(const Value& x) {
  matrices(x);
  int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims.back();
  if (rows >= 0 && columns >= 0 && rows != columns)
    invalid(cat("expected square matrices, got ", x.text()));
  return x;
}
Value transposed(const Value& x) {
  return by_name(*x.graph, "matrix_transpose", Json::array({json_of(x)}));
}
Value times(const Value& x, const Value& y) {
  return node("MatMul", {x, y});
}
std::vector<Value> factors(std::string_view op,
                           const Value& x,
                           uint64_t count,
                           const Json& attributes) {
  return x.graph->nodes(op, {{x}}, attributes, count, kDomain);
}
Value solved(const Value& a, const Value& b) {
  std::vector<Value> inputs = {a, b};
  return a.graph->nodes("Solve", inputs, {}, 1, kDomain).front();
}
Value identity(const Value& x) {  // of the size of square matrices x
  int64_t n = x.size_of(x.rank() - 1);
  return by_name(*x.graph, "eye", {n, nullptr, 0, cxx::dtype_name(x.dtype)});
}
std::vector<Value> svd_of(const Value& x, bool full) {
  return factors("Svd", matrices(x), 3, {{"full", full ? 1 : 0}});
}
Value values_of(const Value& x) {
  return svd_of(x, false)[1];
}

Values solve(Call& c) {
  square(c[0]);
  if (c[1].rank() != 1) return solved(c[0], c[1]);
  return squeeze(solved(c[0], expand_dims(c[1], 1)), {c[0].rank() - 1});
}

Values power(Call& c) {
  int64_t n = c.integer(1);
  Value x = n < 0 ? solved(square(c[0]), identity(c[0])) : square(c[0]);
  if (n == 0) return broadcast_together({identity(x), x})[0];
  uint64_t left = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  std::optional<Value> made;
  for (; left; left >>= 1) {  // by squares
    if (left & 1) made = made ? times(*made, x) : x;
    if (left > 1) x = times(x, x);
  }
  return *made;
}

double epsilon_of(uint32_t dtype) {
  return dtype == TN_F64 ? std::numeric_limits<double>::epsilon()
                         : std::numeric_limits<float>::epsilon();
}
// Below so much of the largest singular value counts as 0; [..., 1].
Value least(const Call& c, const Value& x, const Value& s) {
  auto size = static_cast<double>(std::max(x.size_of(x.rank() - 1), x.size_of(x.rank() - 2)));
  Value largest = reduce("ReduceMax", s, {s.rank() - 1}, true);
  return largest * (c.json(1).is_null() ? size * epsilon_of(x.dtype) : c.json(1).get<double>());
}
Values rank(Call& c) {
  Value s = values_of(c[0]);
  return reduce("ReduceSum", cast(lt(least(c, c[0], s), s), TN_I64), {s.rank() - 1}, false);
}
Values pseudo_inverse(Call& c) {
  std::vector<Value> f = svd_of(c[0], false);
  Value counts = lt(least(c, c[0], f[1]), f[1]);
  Value safe = where(counts, f[1], 1.0);
  Value inverse = where(counts, Operand(1.0) / safe, 0.0);
  return times(transposed(f[2]) * expand_dims(inverse, f[1].rank() - 1), transposed(f[0]));
}

Value diagonal_of(const Value& x, int64_t offset) {
  int64_t rows = matrices(x).size_of(x.rank() - 2), columns = x.size_of(x.rank() - 1);
  int64_t first = offset < 0 ? -offset * columns : offset;
  int64_t count = std::max<int64_t>(
      0, std::min(offset < 0 ? rows + offset : rows, offset < 0 ? columns : columns - offset));
  if (count == 0) first = 0;
  std::vector<int64_t> flat(x.dims.size() - 1, 0);  // 0: the size that x has there
  flat.back() = -1;
  Value line = node("Reshape", {x, x.graph->integers(flat)});
  auto one = [&](int64_t i) { return x.graph->integers({{i}}); };
  return node("Slice", {line, one(first), one(first + count * (columns + 1)), one(x.rank() - 2),
                        one(columns + 1)});
}

// The axis counts from the end, as the others are broadcast.
Values cross(Call& c) {
  const int64_t rank = std::max(c[0].rank(), c[1].rank()), axis = c.axis(2, rank) - rank;
  for (const Value& x : {c[0], c[1]})
    if (x.size_of(axis_of(axis, x.rank())) != 3)
      invalid(cat("linalg.cross: expected axis ", axis, " of size 3, got ", x.text()));
  auto moved = [&](const Value& x, int64_t by) {
    return by_name(c.graph, "roll", {json_of(x), by, axis});
  };
  return moved(c[0], -1) * moved(c[1], -2) - moved(c[0], -2) * moved(c[1], -1);
}

// The largest or the smallest of numbers that are not below 0. The largest of none is 0.
Value extreme(const Value& sizes, const std::vector<int64_t>& axes, bool is_largest, bool keep) {
  if (!is_largest) not_empty(sizes, axes);
  Value made = reduce(is_largest ? "ReduceMax" : "ReduceMin", sizes, axes, keep);
  auto may_be_none = [&](int64_t axis) { return sizes.dims[static_cast<size_t>(axis)] < 1; };
  const bool has_none = is_largest && std::any_of(axes.begin(), axes.end(), may_be_none);
  return has_none ? where(lt(made, 0), 0, made) : made;
}

// The p-norm of the elements along axes.
Value norm_along(const Value& x, const std::vector<int64_t>& axes, double order, bool keep) {
  Value size = node("Abs", {x});
  if (order == 2 && axes.empty()) return size;  // the operator would take all of them
  if (order == 2)
    return node("ReduceL2", {x, x.graph->integers(axes)}, {{"keepdims", keep ? 1 : 0}});
  if (order == 1) return reduce("ReduceSum", size, axes, keep);
  if (std::isinf(order)) return extreme(size, axes, order > 0, keep);
  if (order == 0) return reduce("ReduceSum", cast(logical_not(eq(size, 0.0)), x.dtype), axes, keep);
  return node("Pow", {reduce("ReduceSum", node("Pow", {size, order}), axes, keep), 1 / order});
}

double order_of(const Json& given) {
  if (given.is_number()) return given.get<double>();
  if (given == "inf" || given == "-inf")
    return given == "inf" ? std::numeric_limits<double>::infinity()
                          : -std::numeric_limits<double>::infinity();
  std::string text = given.is_string() ? given.get<std::string>() : cxx::dump(given);
  invalid(cat("linalg: ord: expected a number (of matrices also 'fro' or 'nuc'), got ", text));
}

Values vector_norm(Call& c) {  // x, axis, keepdims, ord
  return norm_along(c[0], c.axes(1, c[0].rank()), order_of(c.json(3)), c.flag(2));
}

Values matrix_norm(Call& c) {  // x, keepdims, ord
  const Value& x = matrices(c[0]);
  bool keep = c.flag(1);
  std::vector<int64_t> both = {x.rank() - 2, x.rank() - 1};
  if (c.json(2) == "fro") return norm_along(x, both, 2, keep);
  bool is_nuclear = c.json(2) == "nuc";
  double order = is_nuclear ? 0 : order_of(c.json(2));
  if (std::fabs(order) == 1 || std::isinf(order)) {  // sums of columns, of rows
    bool by_columns = std::fabs(order) == 1;
    Value sums = reduce("ReduceSum", node("Abs", {x}), {both[by_columns ? 0 : 1]}, true);
    return extreme(sums, both, order > 0, keep);
  }
  if (!is_nuclear && std::fabs(order) != 2)
    invalid(cat("linalg.matrix_norm: ord: expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got ",
                order));
  Value s = values_of(x);
  const std::vector<int64_t> last = {s.rank() - 1};
  Value made = is_nuclear ? reduce("ReduceSum", s, last, keep) : extreme(s, last, order > 0, keep);
  return keep ? expand_dims(made, made.rank()) : made;
}

Values qr(Call& c) {
  std::string mode = c.text(1);
  if (mode != "reduced" && mode != "complete")
    invalid(cat("linalg.qr: mode: expected 'reduced' or 'complete', got '", mode, "'"));
  return factors("Qr", matrices(c[0]), 2, {{"complete", mode == "complete" ? 1 : 0}});
}

const Function kRows[] = {
    {"linalg.cholesky(x: float, upper: flag = false)", "",
     "The lower triangle L with x = L L^T, of the symmetric part of x, which is positive definite; "
     "its transpose with upper.",
     "",
     [](Call& c) -> Values {
       Value lower = factors("Cholesky", square(c[0]), 1, {}).front();
       return c.flag(1) ? transposed(lower) : lower;
     }},
    {"linalg.cross(a: together, b: together, axis: int = -1)", "",
     "The cross product of vectors of three elements along axis.", "", cross},
    {"linalg.det(x: float)", "Det", "The determinant of square matrices.", "",
     [](Call& c) -> Values { return node("Det", {square(c[0])}); }},
    {"linalg.diagonal(x, offset: int = 0)", "",
     "The elements of a diagonal, which lies above the main one where offset is positive.", "",
     [](Call& c) -> Values { return diagonal_of(c[0], c.integer(1)); }},
    {"linalg.eigh(x: float) -> eigenvalues, eigenvectors", "",
     "Eigenvalues in rising order and eigenvectors, as columns, of the symmetric part of x.", "",
     [](Call& c) -> Values { return factors("Eigh", square(c[0]), 2, {}); }},
    {"linalg.eigvalsh(x: float)", "", "The eigenvalues of the symmetric part of x, rising.", "",
     [](Call& c) -> Values { return factors("Eigh", square(c[0]), 2, {}).front(); }},
    {"linalg.inv(x: float)", "",
     "The inverse of square matrices; an error of a singular one. linalg.solve is faster and more "
     "accurate than a product with it.",
     "", [](Call& c) -> Values { return solved(square(c[0]), identity(c[0])); }},
    {"linalg.matmul(a: together, b: together)", "matmul", "As matmul.", "", same},
    {"linalg.matrix_norm(x: float, keepdims: flag = false, ord: plain = \"fro\")", "",
     "A norm of matrices: 'fro', 'nuc' (the sum of the singular values), 2 and -2 (the largest and "
     "the smallest of them), 1 and -1 (sums of columns), inf and -inf (sums of rows), as texts "
     "too.",
     "", matrix_norm},
    {"linalg.matrix_power(x: float, n: int)", "",
     "The product of n matrices x; of their inverses where n is negative.", "", power},
    {"linalg.matrix_rank(x: float, rtol: scalar = none)", "",
     "How many singular values are above rtol times the largest, int64.", "", rank},
    {"linalg.matrix_transpose(x)", "matrix_transpose", "As matrix_transpose.", "", same},
    {"linalg.outer(a: together, b: together)", "", "The products of all elements of two vectors.",
     "",
     [](Call& c) -> Values { return product("Einsum", {c[0], c[1]}, {{"equation", "i,j->ij"}}); }},
    {"linalg.pinv(x: float, rtol: scalar = none)", "",
     "The pseudo-inverse; singular values up to rtol times the largest count as 0.", "",
     pseudo_inverse},
    {"linalg.qr(x: float, mode: text = \"reduced\") -> Q, R", "",
     "x = Q R with orthonormal columns and an upper triangle; mode 'complete': Q is square.", "",
     qr},
    {"linalg.slogdet(x: float) -> sign, logabsdet", "",
     "The sign of the determinant and the logarithm of its size.", "",
     [](Call& c) -> Values { return factors("SlogDet", square(c[0]), 2, {}); }},
    {"linalg.solve(a: together float, b: together float)", "",
     "The x with a x = b, for a vector b or for matrices; an error where a is singular.", "",
     solve},
    {"linalg.svd(x: float, full_matrices: flag = true) -> U, S, Vh", "",
     "x = U diag(S) Vh with orthonormal columns of U and rows of Vh; S falls. Without "
     "full_matrices "
     "they have as many as S, which is the form that has a gradient.",
     "", [](Call& c) -> Values { return svd_of(c[0], c.flag(1)); }},
    {"linalg.svdvals(x: float)", "", "The singular values, falling.", "",
     [](Call& c) -> Values { return values_of(c[0]); }},
    {"linalg.tensordot(a: together, b: together, axes: plain = 2)", "tensordot", "As tensordot.",
     "", same},
    {"linalg.trace(x, offset: int = 0, dtype: dtype = none)", "",
     "The sum of a diagonal; of integers in 64 bits.", "",
     [](Call& c) -> Values {
       Value line = summed(diagonal_of(c[0], c.integer(1)), c.dtype(2));
       return reduce("ReduceSum", line, {line.rank() - 1}, false);
     }},
    {"linalg.vecdot(a: together, b: together, axis: int = -1)", "vecdot", "As vecdot.", "", same},
    {"linalg.vector_norm(x: float, axis: axes = none, keepdims: flag = false, ord: plain = 2)", "",
     "The norm of the elements over axis: the root of the sum of powers, for inf the largest.", "",
     vector_norm},
};

}  // namespace

const std::span<const Function> kLinalg = kRows;

}  // namespace tenon::arrays
