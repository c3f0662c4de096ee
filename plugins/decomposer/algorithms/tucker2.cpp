// SPDX-License-Identifier: Apache-2.0
#include "algorithms/tucker2.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::decomposer {
namespace {

// W x_in Vᵀ: [n_out, rank_in, window].
Kernel project_in(const Kernel& weight, const Matrix& in) {
  Kernel out{weight.n_out, in.cols(), weight.window, {}};
  out.numbers.resize(static_cast<size_t>(out.n_out * out.n_in * out.window));
  Matrix transposed = in.transpose();
  for (int64_t o = 0; o < weight.n_out; ++o) {
    Eigen::Map<Matrix> to(out.numbers.data() + o * out.n_in * out.window, out.n_in, out.window);
    to.noalias() = transposed * weight.of_out(o);
  }
  return out;
}

// W x_out Uᵀ: [rank_out, n_in, window].
Kernel project_out(const Kernel& weight, const Matrix& out) {
  Kernel result{out.cols(), weight.n_in, weight.window, {}};
  result.numbers.resize(static_cast<size_t>(result.n_out * result.n_in * result.window));
  Eigen::Map<Matrix> to(result.numbers.data(), result.n_out, result.n_in * result.window);
  to.noalias() = out.transpose() * weight.by_out();
  return result;
}

// U and V are orthonormal, so what the core lacks of the norm is the error.
double error_of(const Kernel& weight, const Kernel& core) {
  double whole = weight.squared_norm();
  if (whole <= 0) return 0;
  return std::sqrt(std::max(1 - core.squared_norm() / whole, 0.0));
}

}  // namespace

Modes modes_of(const Kernel& weight) {
  return {spectrum_of_gram(gram_by_out(weight)), spectrum_of_gram(gram_by_in(weight))};
}

Tucker2 tucker2(const Kernel& weight,
                const Modes& modes,
                int64_t rank_out,
                int64_t rank_in,
                const HooiLimits& limits) {
  Tucker2 best{modes.out.vectors.leftCols(rank_out), modes.in.vectors.leftCols(rank_in), {}, 0, 0};
  best.core = project_out(project_in(weight, best.in), best.out);
  best.error = error_of(weight, best.core);
  for (int64_t i = 1; i <= limits.iterations; ++i) {
    Kernel narrow = project_in(weight, best.in);
    Matrix out = spectrum_of_gram(gram_by_out(narrow)).vectors.leftCols(rank_out);
    Kernel low = project_out(weight, out);
    Matrix in = spectrum_of_gram(gram_by_in(low)).vectors.leftCols(rank_in);
    Kernel core = project_in(low, in);
    double error = error_of(weight, core);
    double gain = best.error - error;
    if (gain > 0) best = {std::move(out), std::move(in), std::move(core), error, i};
    if (gain < limits.tolerance) break;
  }
  return best;
}

}  // namespace tenon::decomposer
