// SPDX-License-Identifier: Apache-2.0
// "layers.orthogonal": rows (or columns, where there are more rows) at right angles and of length
// gain (Saxe et al. 2014, "Exact solutions to the nonlinear dynamics of learning in deep linear
// neural networks"). Axes after the first count as one. Normal draws, made orthogonal one after the
// other by Gram-Schmidt, twice each, which is as exact as Householder (Giraud et al. 2005).
#include "draws.hpp"

namespace tenon::layers {
namespace {

class Orthogonal {
 public:
  static Result<Orthogonal> create(tn_ctx*, const Options& options) {
    return Orthogonal{options.number("gain")};
  }
  Status fill(const tn_initial& of, std::span<float> out) const {
    if (of.rank < 2)
      return invalid(
          cat("layers.orthogonal: expected a parameter of rank 2 at least, got rank ", of.rank));
    if (out.empty()) return {};
    auto rows = static_cast<size_t>(of.shape[0]);
    size_t columns = out.size() / rows;
    // count vectors of `size` numbers, dense.
    size_t count = std::min(rows, columns), size = std::max(rows, columns);
    std::vector<double> vectors(out.size());
    services.random->normal(of.seed, of.stream, 0, vectors.data(), vectors.size());
    for (size_t i = 0; i < count; ++i)
      make_orthogonal(std::span(vectors), i, size);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c)
        out[r * columns + c] =
            static_cast<float>(gain_ * vectors[rows <= columns ? r * size + c : c * size + r]);
    return {};
  }

 private:
  explicit Orthogonal(double gain) : gain_(gain) {}

  static void make_orthogonal(std::span<double> all, size_t i, size_t size) {
    std::span<double> x = all.subspan(i * size, size);
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t k = 0; k < i; ++k) {
        std::span<double> other = all.subspan(k * size, size);
        double along = dot(x, other);
        for (size_t j = 0; j < size; ++j)
          x[j] -= along * other[j];
      }
    }
    double length = std::sqrt(dot(x, x));
    for (double& one : x)
      one /= length;
  }
  static double dot(std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (size_t j = 0; j < a.size(); ++j)
      sum += a[j] * b[j];
    return sum;
  }
  double gain_;
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(orthogonal,
                  tenon::layers::Orthogonal,
                  "layers.orthogonal",
                  "rows at right angles to each other",
                  R"({
  "properties": {
    "gain": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "length of the rows"}}})")
