// SPDX-License-Identifier: Apache-2.0
// Rows are cut into pieces that stay in the cache; each has sums of its own, so that results do not
// depend on the number of threads.
#include "batch_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernel_table.h"
#include "numbers.h"

namespace tenon::onednn::kernels {
namespace {

constexpr int64_t kLanesOfAnyLevel = 16;
constexpr int64_t kPieceElements = 8192, kPieceRows = 32;  // at least
constexpr int64_t kTables = 5;

int64_t period_of(int64_t channels) {
  return std::lcm(channels, kLanesOfAnyLevel);
}

struct Pieces {
  explicit Pieces(const BatchNorm& norm) : period(period_of(norm.channels)), all(norm.rows) {
    const int64_t repeats = period / norm.channels;
    const int64_t least = std::max(kPieceRows, kPieceElements / norm.channels);
    rows = (least + repeats - 1) / repeats * repeats;
    count = (all + rows - 1) / rows;
  }
  int64_t rows_of(int64_t piece) const { return std::min(rows, all - piece * rows); }

  int64_t period, all, rows = 0, count = 0;
};

// The scratch memory: two sums of each piece by place in the period, then tables.
struct Scratch {
  Scratch(const Pieces& pieces, void* memory)
      : sums(static_cast<float*>(memory)), tables(sums + 2 * pieces.count * pieces.period) {}
  float* sums;
  float* tables;
};

class Run {
 public:
  Run(const Context& context, const BatchNorm& norm, void* scratch)
      : context_(context), norm_(norm), pieces_(norm), scratch_(pieces_, scratch) {}

  // The table of what channels have, repeated.
  template <class Of>
  const float* table(int64_t which, const Of& of) const {
    float* made = scratch_.tables + which * pieces_.period;
    for (int64_t c = 0; c < norm_.channels; ++c)
      made[c] = of(c);
    for (int64_t i = norm_.channels; i < pieces_.period; ++i)
      made[i] = made[i - norm_.channels];
    return made;
  }

  void each_piece(void (*kernel)(const BatchNormPiece&), BatchNormPiece of) const {
    const int64_t element = element_bytes(norm_.type);
    const int64_t stride = pieces_.rows * norm_.channels;
    parallel_for(context_.parallel, pieces_.count, grain_rows(stride * element),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t i = lo; i < hi; ++i)
                     kernel(piece(of, i, stride * element * i));
                 });
  }

  // Joins the sums of all pieces: join(rows of the piece, its two sums of the channel).
  template <class Join>
  void each_sum(int64_t channel, const Join& join) const {
    for (int64_t i = 0; i < pieces_.count; ++i) {
      const float* sums = scratch_.sums + 2 * i * pieces_.period + channel;
      join(static_cast<double>(pieces_.rows_of(i)), static_cast<double>(sums[0]),
           static_cast<double>(sums[pieces_.period]));
    }
  }

  const KernelTable& kernels() const { return *context_.table; }

 private:
  BatchNormPiece piece(BatchNormPiece of, int64_t i, int64_t offset) const {
    auto at = [offset](auto* p) { return p ? p + offset : p; };
    of.type = norm_.type;
    of.has_relu = norm_.has_relu;
    of.channels = norm_.channels;
    of.period = pieces_.period;
    of.n = pieces_.rows_of(i) * norm_.channels;
    of.x = at(static_cast<const char*>(of.x));
    of.dy = at(static_cast<const char*>(of.dy));
    of.out = at(static_cast<char*>(of.out));
    of.first = scratch_.sums + 2 * i * pieces_.period;
    of.second = of.first + pieces_.period;
    return of;
  }

  const Context& context_;
  const BatchNorm& norm_;
  Pieces pieces_;
  Scratch scratch_;
};

float inverse_deviation(const BatchNorm& norm, float variance) {
  return 1.0F / std::sqrt(variance + norm.epsilon);
}

// By Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample
// variances": each piece has its own mean.
void find_statistics(
    const Run& run, const BatchNorm& norm, const void* x, float* mean, float* variance) {
  BatchNormPiece of;
  of.x = x;
  run.each_piece(run.kernels().batch_moments, of);
  const auto rows = static_cast<double>(norm.rows);
  for (int64_t c = 0; c < norm.channels; ++c) {
    double sum = 0, squares = 0;
    run.each_sum(c, [&](double n, double piece_mean, double) { sum += n * piece_mean; });
    const double whole = sum / rows;
    run.each_sum(c, [&](double n, double piece_mean, double piece_squares) {
      squares += piece_squares + n * (piece_mean - whole) * (piece_mean - whole);
    });
    mean[c] = static_cast<float>(whole);
    variance[c] = static_cast<float>(squares / rows);
  }
}

}  // namespace

int64_t BatchNorm::scratch_bytes() const {
  const Pieces pieces(*this);
  return (2 * pieces.count + kTables) * pieces.period * static_cast<int64_t>(sizeof(float));
}

void batch_statistics(const Context& context,
                      const BatchNorm& norm,
                      const void* x,
                      float* mean,
                      float* variance,
                      void* scratch) {
  find_statistics(Run(context, norm, scratch), norm, x, mean, variance);
}

void batch_norm(const Context& context,
                const BatchNorm& norm,
                const BatchNormForward& of,
                void* scratch) {
  const Run run(context, norm, scratch);
  find_statistics(run, norm, of.x, of.mean, of.variance);
  float *factor = of.affine, *summand = of.affine + norm.channels;
  for (int64_t c = 0; c < norm.channels; ++c) {
    factor[c] = of.scale[c] * inverse_deviation(norm, of.variance[c]);
    summand[c] = of.shift[c] - of.mean[c] * factor[c];
  }
  BatchNormPiece piece;
  piece.x = of.x;
  piece.out = of.y;
  piece.factor = run.table(0, [&](int64_t c) { return factor[c]; });
  piece.shift = run.table(1, [&](int64_t c) { return summand[c]; });
  run.each_piece(run.kernels().batch_scale, piece);
}

void batch_norm_grad(const Context& context,
                     const BatchNorm& norm,
                     const BatchNormBackward& of,
                     void* scratch) {
  const Run run(context, norm, scratch);
  auto inverse = [&](int64_t c) { return inverse_deviation(norm, of.variance[c]); };
  BatchNormPiece piece;
  piece.x = of.x;
  piece.dy = of.dy;
  piece.mean = run.table(0, [&](int64_t c) { return of.mean[c]; });
  piece.factor = run.table(
      1, [&](int64_t c) { return norm.has_relu ? of.affine[c] : of.scale[c] * inverse(c); });
  if (norm.has_relu)
    piece.shift = run.table(2, [&](int64_t c) { return of.affine[norm.channels + c]; });
  run.each_piece(run.kernels().batch_grad_sums, piece);
  const auto rows = static_cast<double>(norm.rows);
  auto sums_of = [&](int64_t c) {
    double plain = 0, weighted = 0;
    run.each_sum(c, [&](double, double first, double second) {
      plain += first;
      weighted += second;
    });
    return std::pair(plain, weighted * static_cast<double>(inverse(c)));
  };
  for (int64_t c = 0; c < norm.channels; ++c) {
    auto [plain, weighted] = sums_of(c);
    of.dshift[c] = static_cast<float>(plain);
    of.dscale[c] = static_cast<float>(weighted);
  }
  const float* factor = piece.factor;
  piece.constant = run.table(3, [&](int64_t c) {
    return static_cast<float>(static_cast<double>(factor[c]) * of.dshift[c] / rows);
  });
  piece.slope = run.table(4, [&](int64_t c) {
    return static_cast<float>(static_cast<double>(factor[c]) * inverse(c) * of.dscale[c] / rows);
  });
  piece.out = of.dx;
  run.each_piece(run.kernels().batch_grad_apply, piece);
}

}  // namespace tenon::onednn::kernels
