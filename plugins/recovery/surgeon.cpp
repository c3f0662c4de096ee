// SPDX-License-Identifier: Apache-2.0
#include "surgeon.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tenon::recovery {
namespace {

using Mask = Eigen::Matrix<bool, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// U, upper triangular, with inverse(H) = UT U; empty where there is none.
Matrix factor_of_inverse(const Matrix& seconds, double damping) {
  const Eigen::Index n = seconds.rows();
  const double mean = seconds.trace() / static_cast<double>(n);
  if (!(mean > 0) || !std::isfinite(mean)) return {};
  for (int tries = 0; tries < 4; ++tries, damping = std::max(damping, 1e-9) * 10) {
    Matrix h = seconds;
    h.diagonal().array() += damping * mean;
    Eigen::LLT<Matrix> whole(h);
    if (whole.info() != Eigen::Success) continue;
    Eigen::LLT<Matrix> inverse(whole.solve(Matrix::Identity(n, n)));
    if (inverse.info() == Eigen::Success) return inverse.matrixU();
  }
  return {};
}

// Which weights of columns [from, from + size) go: those whose loss costs least, w^2 / U_jj^2.
// What was zero comes first: it stays so, whatever was given to it for others.
void choose_block(const Matrix& w,
                  const Matrix& u,
                  const Mask& was_zero,
                  Eigen::Index from,
                  double share,
                  Mask* gone) {
  struct Cost {
    double cost;
    Eigen::Index row, column;
  };
  std::vector<Cost> costs;
  for (Eigen::Index c = 0; c < gone->cols(); ++c)
    for (Eigen::Index r = 0; r < w.rows(); ++r) {
      const double part = was_zero(r, from + c) ? 0 : w(r, from + c) / u(from + c, from + c);
      costs.push_back({part * part, r, c});
    }
  const auto n =
      static_cast<std::ptrdiff_t>(std::floor(share * static_cast<double>(costs.size()) + 1e-9));
  std::stable_sort(costs.begin(), costs.end(),
                   [](const Cost& a, const Cost& b) { return a.cost < b.cost; });
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(costs.size()); ++i) {
    const Cost& one = costs[static_cast<size_t>(i)];
    (*gone)(one.row, one.column) = i < n || one.cost == 0;
  }
}

// The same of each run of neighbours from this column on, as the weights are by then.
void choose_run(const Matrix& w,
                const Matrix& u,
                const Mask& was_zero,
                Eigen::Index column,
                const SurgeonPlan& plan,
                Eigen::Index from,
                Mask* gone) {
  const Eigen::Index size = std::min<Eigen::Index>(plan.of, w.cols() - column);
  for (Eigen::Index r = 0; r < w.rows(); ++r) {
    std::vector<Eigen::Index> order;
    for (Eigen::Index c = 0; c < size; ++c)
      order.push_back(column + c);
    auto cost = [&](Eigen::Index c) { return was_zero(r, c) ? 0 : std::abs(w(r, c) / u(c, c)); };
    std::stable_sort(order.begin(), order.end(),
                     [&](Eigen::Index a, Eigen::Index b) { return cost(a) < cost(b); });
    for (Eigen::Index i = 0; i < size; ++i)
      (*gone)(r, order[static_cast<size_t>(i)] - from) =
          i < size - plan.keep || w(r, order[static_cast<size_t>(i)]) == 0;
  }
}

}  // namespace

bool take_out(Matrix* weight, const Matrix& seconds, const SurgeonPlan& plan) {
  const Matrix u = factor_of_inverse(seconds, plan.damping);
  if (u.size() == 0) return false;
  Matrix& w = *weight;
  const Mask was_zero = w.array() == 0;
  Eigen::Index block = std::max<int64_t>(plan.block, 1);
  if (plan.of > 0) block = (block + plan.of - 1) / plan.of * plan.of;  // runs stay whole
  for (Eigen::Index from = 0; from < w.cols(); from += block) {
    const Eigen::Index size = std::min(block, w.cols() - from), to = from + size;
    Mask gone = Mask::Zero(w.rows(), size);
    if (plan.of == 0) choose_block(w, u, was_zero, from, plan.sparsity, &gone);
    Matrix errors(w.rows(), size);
    for (Eigen::Index c = 0; c < size; ++c) {
      const Eigen::Index at = from + c;
      if (plan.of > 0 && at % plan.of == 0) choose_run(w, u, was_zero, at, plan, from, &gone);
      for (Eigen::Index r = 0; r < w.rows(); ++r) {
        const bool goes = gone(r, c) || was_zero(r, at);
        errors(r, c) = goes ? w(r, at) / u(at, at) : 0;
      }
      w.middleCols(at, to - at).noalias() -= errors.col(c) * u.row(at).segment(at, to - at);
    }
    w.rightCols(w.cols() - to).noalias() -= errors * u.block(from, to, size, w.cols() - to);
    for (Eigen::Index c = 0; c < size; ++c)  // exact zeros, whatever was rounded
      for (Eigen::Index r = 0; r < w.rows(); ++r)
        if (gone(r, c) || was_zero(r, from + c)) w(r, from + c) = 0;
  }
  return true;
}

}  // namespace tenon::recovery
