// SPDX-License-Identifier: Apache-2.0
#include "algorithms/low_rank.hpp"

namespace tenon::decomposer {
namespace {

Matrix short_side_gram(const MatrixView& matrix) {
  if (matrix.rows() <= matrix.cols()) return matrix * matrix.transpose();
  return matrix.transpose() * matrix;
}

}  // namespace

Spectrum short_side_spectrum(const MatrixView& matrix) {
  return spectrum_of_gram(short_side_gram(matrix));
}

Vector short_side_values(const MatrixView& matrix) {
  return singular_values_of_gram(short_side_gram(matrix));
}

LowRank truncate(const MatrixView& matrix, const Spectrum& spectrum, int64_t rank) {
  Matrix kept = spectrum.vectors.leftCols(rank);
  // The projection on the kept vectors needs no division by a singular value, which may be tiny;
  // the share of each factor does, and is left at 1 where it would blow up.
  Vector root(rank);
  for (int64_t i = 0; i < rank; ++i) {
    bool tiny = spectrum.values[i] <= 1e-8 * spectrum.values[0];
    root[i] = tiny ? 1 : std::sqrt(spectrum.values[i]);
  }
  Vector inverse = root.cwiseInverse();
  if (matrix.rows() <= matrix.cols()) {
    Matrix projected = kept.transpose() * matrix;
    return {kept * root.asDiagonal(), inverse.asDiagonal() * projected};
  }
  Matrix projected = matrix * kept;
  Matrix transposed = kept.transpose();
  return {projected * inverse.asDiagonal(), root.asDiagonal() * transposed};
}

}  // namespace tenon::decomposer
