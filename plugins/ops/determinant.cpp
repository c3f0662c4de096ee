// SPDX-License-Identifier: Apache-2.0
// Det, and tenon:Cofactors(x): the determinants of what is left without one row and one column,
// with their signs, which are the gradient of Det.
#include <cmath>
#include <utility>
#include <vector>

#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "matrices.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status det_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked || x.rank() < 2) return set_output(edit, node, 0, unranked(x.dtype));
  Dims out = dims_of(x);
  out.resize(out.size() - 2);
  return set_output(edit, node, 0, x.dtype, out);
}

// Elimination with the largest pivot of each column.
double determinant(std::vector<double> m, size_t n) {
  double product = 1;
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row)
      if (std::fabs(m[row * n + column]) > std::fabs(m[pivot * n + column])) pivot = row;
    if (m[pivot * n + column] == 0) return 0;
    for (size_t k = 0; pivot != column && k < n; ++k)
      std::swap(m[pivot * n + k], m[column * n + k]);
    product *= m[column * n + column] * (pivot == column ? 1 : -1);
    for (size_t row = column + 1; row < n; ++row) {
      double factor = m[row * n + column] / m[column * n + column];
      for (size_t k = column; k < n; ++k)
        m[row * n + k] -= factor * m[column * n + k];
    }
  }
  return product;
}

Status det_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2])
    return invalid("x: expected square matrices");
  auto n = static_cast<size_t>(shape.back());
  TN_TRY(out, call.out(0, call.dtype(0), shape.subspan(0, shape.size() - 2)));
  return dispatch<kFloats>(call.dtype(0), [&, &y = out]<class T>() -> Status {
    for (int64_t i = 0; i < element_count(y); ++i) {
      std::vector<double> m(n * n);
      for (size_t k = 0; k < m.size(); ++k)
        m[k] = static_cast<double>(call.data<T>(0)[static_cast<size_t>(i) * m.size() + k]);
      data_of<T>(y)[i] = static_cast<T>(determinant(std::move(m), n));
    }
    return {};
  });
}

Result<Node> det_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t n = random.integer(1, 4);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 3), n, n}));
  return edit.add({.type = "Det", .inputs = {x}});
}

Status det_vjp(Gradients& g) {
  Node cofactors = g.node({.type = "Cofactors", .inputs = {g.in(0)}, .domain = "tenon"});
  if (!cofactors) return {};
  Value dy = g.op("Unsqueeze", {g.cotangent(), g.ints({-2, -1})});
  g.set(0, g.mul(dy, cofactors.output()));
  return {};
}

Status cofactors_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}

// A with its rows and columns in another order is L U, L with ones on its diagonal and the largest
// pivot that is left in each step of U. Then the adjugate of A is that of U times L^-1, in the
// other order of rows and columns and with the order's sign, and with U = (V u; 0 d)
//   adj U = det V (d V^-1, -V^-1 u; 0, 1),
// right where d is 0 too. Where V is singular, all cofactors are 0.
class Elimination {
 public:
  Elimination(std::vector<double> numbers, size_t n) : m_(std::move(numbers)), n_(n) {
    for (size_t i = 0; i < n; ++i)
      rows_.push_back(i), columns_.push_back(i);
    for (size_t step = 0; step + 1 < n && is_regular_; ++step)
      eliminate(step);
  }

  std::vector<double> cofactors() const {
    std::vector<double> made(n_ * n_, 0.0);
    if (!is_regular_) return made;
    const std::vector<double> found = adjugate();
    for (size_t i = 0; i < n_; ++i)
      for (size_t k = 0; k < n_; ++k)
        made[rows_[k] * n_ + columns_[i]] = std::ldexp(found[i * n_ + k] * product_, exponent_);
    return made;
  }

 private:
  double at(size_t row, size_t column) const { return m_[row * n_ + column]; }

  void eliminate(size_t step) {
    size_t row = step, column = step;
    for (size_t i = step; i < n_; ++i)
      for (size_t k = step; k < n_; ++k)
        if (std::fabs(at(i, k)) > std::fabs(at(row, column))) row = i, column = k;
    const double pivot = at(row, column);
    is_regular_ = pivot != 0;
    if (!is_regular_) return;
    if (row != step) swap_rows(row, step);
    if (column != step) swap_columns(column, step);
    int more = 0;  // so that the product neither overflows nor vanishes
    product_ = std::frexp(product_ * pivot, &more);
    exponent_ += more;
    for (size_t i = step + 1; i < n_; ++i) {
      const double factor = m_[i * n_ + step] /= pivot;
      for (size_t k = step + 1; k < n_; ++k)
        m_[i * n_ + k] -= factor * at(step, k);
    }
  }
  void swap_rows(size_t a, size_t b) {
    std::swap(rows_[a], rows_[b]);
    std::swap_ranges(&m_[a * n_], &m_[a * n_] + n_, &m_[b * n_]);
    product_ = -product_;
  }
  void swap_columns(size_t a, size_t b) {
    std::swap(columns_[a], columns_[b]);
    for (size_t i = 0; i < n_; ++i)
      std::swap(m_[i * n_ + a], m_[i * n_ + b]);
    product_ = -product_;
  }

  // Without the factor det V: rows of L^-1, then from the last one up those of the result.
  std::vector<double> adjugate() const {
    std::vector<double> made(n_ * n_, 0.0);
    auto add = [&](size_t to, double factor, size_t from, size_t n) {
      for (size_t k = 0; k < n; ++k)
        made[to * n_ + k] += factor * made[from * n_ + k];
    };
    for (size_t i = 0; i < n_; ++i) {
      made[i * n_ + i] = 1;
      for (size_t k = 0; k < i; ++k)
        add(i, -at(i, k), k, k + 1);
    }
    const size_t last = n_ - 1;
    for (size_t i = last; i-- > 0;) {
      for (size_t k = 0; k < n_; ++k)
        made[i * n_ + k] *= at(last, last);
      for (size_t k = i + 1; k < n_; ++k)
        add(i, -at(i, k), k, n_);
      for (size_t k = 0; k < n_; ++k)
        made[i * n_ + k] /= at(i, i);
    }
    return made;
  }

  std::vector<double> m_;  // U, and under its diagonal L
  size_t n_;
  std::vector<size_t> rows_, columns_;  // of A, in the order of m_
  double product_ = 1;                  // times 2^exponent_: of the pivots but the last one
  int exponent_ = 0;
  bool is_regular_ = true;
};

Status cofactors_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2])
    return invalid("x: expected square matrices");
  auto n = static_cast<size_t>(shape.back());
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  if (n == 0) return {};
  auto count = static_cast<uint64_t>(element_count(shape)) / (n * n);
  return dispatch<kFloats>(call.dtype(0), [&, &y = out]<class T>() -> Status {
    parallel_for(call.ctx(), count, 1, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        const T* x = call.data<T>(0) + i * n * n;
        std::vector<double> m(n * n);
        for (size_t k = 0; k < m.size(); ++k)
          m[k] = static_cast<double>(x[k]);
        m = Elimination(std::move(m), n).cofactors();
        for (size_t k = 0; k < m.size(); ++k)
          data_of<T>(y)[i * n * n + k] = static_cast<T>(m[k]);
      }
    });
    return {};
  });
}

// By the determinants themselves, whose gradients are cofactors again.
Result<std::vector<Value>> cofactors_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0);
  Type type = b.ranked(x, "Cofactors");
  int64_t n = type.rank() < 2 ? -1 : type.dims.back();
  if (n < 0) return unsupported("Cofactors: composite where the size of the matrices is known");
  TN_CHECK(check_matrix(n, n));
  if (n < 2) {
    Value ones = b.add(b.mul(x, b.number(0, type.dtype)), b.number(1, type.dtype));
    TN_CHECK(b.status());
    return std::vector<Value>{ones};
  }
  std::vector<int64_t> others, perm;
  std::vector<double> signs;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n; ++k) {
      if (k != i) others.push_back(k);
      signs.push_back((i + k) % 2 ? -1 : 1);
    }
  }
  auto rank = static_cast<int64_t>(type.rank());
  Value at = b.take(b.edit().constant<int64_t>(TN_I64, {n, n - 1}, others));
  Value rows = b.op("Gather", {x, at}, {{"axis", rank - 2}});
  Value minors = b.op("Gather", {rows, at}, {{"axis", rank}});  // [.., n, n-1, n, n-1]
  for (int64_t i = 0; i < rank + 2; ++i)
    perm.push_back(i == rank - 1 ? rank : i == rank ? rank - 1 : i);
  Value y =
      b.mul(b.op("Det", {b.transpose(minors, perm)}), constant_of(b, type.dtype, {n, n}, signs));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> cofactors_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t n = random.integer(1, 4);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 3), n, n}));
  return edit.add({.type = "Cofactors", .inputs = {x}, .domain = "tenon"});
}

// factor times n^3 operations for each matrix.
OpCost cubic_cost(Node node, double factor) {
  Type x = node.input(0).type();
  if (!x.is_static() || x.rank() < 2) return {0, node_bytes(node)};
  return {static_cast<double>(x.elements() * x.dims.back()) * factor, node_bytes(node)};
}
OpCost det_cost(Node node) {
  return cubic_cost(node, 2.0 / 3);
}
OpCost cofactors_cost(Node node) {
  return cubic_cost(node, 10.0 / 3);
}

constexpr tn_op kDet = op_row({.type = "Det",
                               .since = 22,
                               .axes = "B* m m -> B*",
                               .shape = shape<det_shape, "x: float[b.. m m]">,
                               .cost = cost<det_cost>,
                               .ref = ref<det_ref>,
                               .sample = sample<det_sample>,
                               .vjp = vjp<det_vjp>,
                               .vjp_inputs = 1,
                               .vjp_outputs = 0,
                               .cast = "cpu=fp32 cuda=fp32"});

constexpr tn_op kCofactors = op_row({.type = "Cofactors",
                                     .domain = "tenon",
                                     .axes = "B* m~ m~ -> B* m m",
                                     .shape = shape<cofactors_shape, "x: float[b.. m m]">,
                                     .decompose = decompose<cofactors_decompose>,
                                     .cost = cost<cofactors_cost>,
                                     .ref = ref<cofactors_ref>,
                                     .sample = sample<cofactors_sample>,
                                     .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(determinant, &kDet, &kCofactors)

}  // namespace tenon::ops
