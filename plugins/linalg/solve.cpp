// SPDX-License-Identifier: Apache-2.0
// tenon:Solve(a, b): the y with a y = b, by elimination with row exchanges. Leading axes broadcast.
#include <Eigen/LU>
#include <algorithm>
#include <optional>

#include "matrices.hpp"

namespace tenon::linalg {
namespace {

// The larger of two sizes that broadcast; nothing where they do not.
std::optional<Axis> both(const Axis& a, const Axis& b) {
  if (a.size == 1) return b;
  if (b.size == 1 || b.size < 0) return a.size < 0 && a.symbol != b.symbol ? Axis{} : a;
  if (a.size < 0 || a.size == b.size) return b;
  return std::nullopt;
}

Status solve_shape(EditView edit, Node node) {
  Type a = node.input(0).type(), b = node.input(1).type();
  Type made;
  made.dtype = a.dtype;
  if (a.ranked && b.ranked) {
    made.ranked = true;
    for (size_t i = std::max(a.rank(), b.rank()); i > 2; --i) {
      Axis left = i <= a.rank() ? axis_from_end(a, i) : Axis{1};
      Axis right = i <= b.rank() ? axis_from_end(b, i) : Axis{1};
      std::optional<Axis> size = both(left, right);
      if (!size)
        return invalid(cat("input 1 (b): expected matrices as many as those of a or one, ",
                           left.size, " in axis ", b.rank() - i, ", got ", right.size));
      made.dims.push_back(size->size);
      made.symbols.push_back(size->symbol);
    }
    for (size_t i : {size_t{2}, size_t{1}}) {
      made.dims.push_back(axis_from_end(b, i).size);
      made.symbols.push_back(axis_from_end(b, i).symbol);
    }
  }
  return edit.set_type(node.output(), made);
}

// Which matrix of `own` belongs to matrix i of the stack that it is broadcast to.
int64_t place_in(const std::vector<int64_t>& own, const std::vector<int64_t>& all, int64_t i) {
  int64_t at = 0, stride = 1;
  for (size_t k = 1; k <= all.size(); ++k) {
    int64_t size = all[all.size() - k];
    if (k <= own.size()) {
      at += own[own.size() - k] == 1 ? 0 : i % size * stride;
      stride *= own[own.size() - k];
    }
    i /= size;
  }
  return at;
}

Result<std::vector<int64_t>> together(const std::vector<int64_t>& a,
                                      const std::vector<int64_t>& b) {
  std::vector<int64_t> made(std::max(a.size(), b.size()), 1);
  for (const auto* one : {&a, &b}) {
    for (size_t k = 1; k <= one->size(); ++k) {
      int64_t size = (*one)[one->size() - k], &all = made[made.size() - k];
      if (size == 1) continue;
      if (all != 1 && all != size)
        return invalid(cat("expected as many matrices as right sides, got ", all, " and ", size));
      all = size;
    }
  }
  return made;
}

Status solve_ref(const Call& call) {
  TN_TRY(a, read(call, 0));
  TN_TRY(b, read(call, 1));
  if (a.rows != a.columns || b.rows != a.rows)
    return invalid(
        cat("a: expected [", b.rows, ", ", b.rows, "], got [", a.rows, ", ", a.columns, "]"));
  TN_TRY(batch, together(a.batch, b.batch));
  Stack y(batch, b.rows, b.columns);
  struct Factors {
    Eigen::PartialPivLU<Matrix> of;
    double factor = 1;
  };
  std::vector<Factors> factors(static_cast<size_t>(a.count()));
  if (a.rows == 0 || b.columns == 0) return write(call, 0, y, {b.rows, b.columns});
  TN_CHECK(for_each(call, a.count(), [&, &a = a](int64_t i) -> Status {
    TN_TRY(factor, factor_of(a[i]));
    Factors& found = factors[static_cast<size_t>(i)];
    found.of.compute(a[i] / (factor * factor));
    found.factor = factor;
    if ((found.of.matrixLU().diagonal().array() != 0).all()) return {};
    return invalid("expected a matrix with an inverse, got a singular one");
  }));
  TN_CHECK(for_each(call, y.count(), [&, &a = a, &b = b, &batch = batch](int64_t i) -> Status {
    const Factors& left = factors[static_cast<size_t>(place_in(a.batch, batch, i))];
    y[i] = b[place_in(b.batch, batch, i)] / left.factor;
    y[i] = left.of.solve(y[i]) / left.factor;
    return {};
  }));
  return write(call, 0, y, {b.rows, b.columns});
}

// b' = a^-T y', a' = -b' y^T.
Status solve_vjp(Gradients& g) {
  Value right = solved(g, transposed(g, g.in(0)), g.cotangent());
  if (g.wanted(1)) g.set(1, right);
  if (g.wanted(0)) g.set(0, g.neg(product(g, right, transposed(g, g.out()))));
  return {};
}

Result<Node> solve_sample(EditView edit, uint64_t seed) {
  Sample random(edit, seed);
  int64_t n = random.integer(1, 4), batch = random.integer(1, 2);
  TN_TRY(x, random.input("x", {batch, n, n}));
  TN_TRY(y, random.input("y", random.integer(0, 1) ? std::vector{n, random.integer(1, 3)}
                                                   : std::vector{batch, n, random.integer(1, 3)}));
  Builder b(edit);
  // Far from singular, whatever the numbers are.
  Value a = b.add(x, pattern(b, x, n, [](int64_t i, int64_t k) { return i == k ? 12.0 : 0.0; }));
  Node made = b.node({.type = "Solve", .inputs = {a, y}, .domain = "tenon"});
  TN_CHECK(b.status());
  return made;
}

OpCost solve_cost(Node node) {
  OpCost factors = cubic_cost(node, 2.0 / 3);
  Type a = node.input(0).type(), y = node.output().type();
  if (!a.is_static() || !y.is_static() || a.dims.empty()) return factors;
  return {factors.flops + 2.0 * static_cast<double>(y.elements() * a.dims.back()),
          factors.bytes + static_cast<double>(bytes_of(y.dtype, y.elements()))};
}

constexpr tn_op kSolve =
    op_row({.type = "Solve",
            .domain = "tenon",
            .axes = "B* m~ m~, B* m~ k -> B* m k",
            .shape = shape<solve_shape, "a: T[a.. m m], b: T[b.. m k] ; T = f32|f64">,
            .cost = cost<solve_cost>,
            .ref = ref<solve_ref>,
            .sample = sample<solve_sample>,
            .vjp = vjp<solve_vjp>,
            .vjp_inputs = 1,
            .vjp_outputs = 1,
            .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(solve, &kSolve)

}  // namespace tenon::linalg
