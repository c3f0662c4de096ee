// SPDX-License-Identifier: Apache-2.0
// Normalization of rows; contract in ../norm.h. A block of the row is loaded (with the residual)
// into a buffer in L1; rows of one block are loaded once, longer ones once per pass.

#include "elements.h"
#include "level.h"

extern "C" double sqrt(double);

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int64_t kBlock = 8192;

const float* row_f32(const Source& src, int64_t offset, int64_t n, float* buffer) {
  if (src.type == ElementType::kF32) return static_cast<const float*>(src.data) + offset;
  load_f32(src, offset, n, buffer);
  return buffer;
}

// What x becomes: ((x - mean) - rest) * factor. mean is rounded to f32, which says little of a row
// whose mean is far larger than its spread; rest is what rounding left of it.
struct Statistics {
  float mean;
  float rest;
  float factor;
};

struct NormRow {
  const NormArgs& args;
  int64_t offset;
  float* buffer;
  float* scratch;

  // The block's x in the buffer; returns its sum. Later passes take x from `sum` where there is
  // one, as it may have replaced src.
  float load_block(int64_t at, int64_t n, bool is_first_pass) const {
    const bool is_summed = !is_first_pass && args.sum.data != nullptr;
    const Source from = is_summed ? Source{args.sum.data, args.sum.type, args.sum.quant} : args.src;
    const float* src = row_f32(from, offset + at, n, buffer);
    const float* residual = nullptr;
    if (args.residual.data != nullptr && !is_summed) {
      residual = row_f32(args.residual, offset + at, n, scratch);
    }
    Vf sum = {};
    each_register(n, [&](int64_t i, int count) {
      Vf x = load_some(src + i, count);
      if (residual != nullptr) x += load_some(residual + i, count);
      store(buffer + i, x);
      sum += x;
    });
    if (is_first_pass && args.sum.data != nullptr) {
      store_f32(buffer, n, args.sum, offset + at, false);
    }
    return sum_lanes(sum);
  }

  // Adds sum(x - mean) and sum((x - mean)^2) of the block.
  void add_sums(int64_t n, float mean, double& plain, double& square) const {
    Vf sum = {};
    Vf squares = {};
    each_register(n, [&](int64_t i, int count) {
      const Vf x = keep_part(load(buffer + i) - mean, count, 0.0F);
      sum += x;
      squares = fma(x, x, squares);
    });
    plain += static_cast<double>(sum_lanes(sum));
    square += static_cast<double>(sum_lanes(squares));
  }

  void finish_block(int64_t at, int64_t n, const Statistics& of) const {
    const float factor = args.kind == Norm::kCentre ? 1.0F : of.factor;
    const Vf shift = splat(-of.rest * factor);
    const bool is_f32 = args.dst.type == ElementType::kF32;
    float* dst = is_f32 ? static_cast<float*>(args.dst.data) + offset + at : buffer;
    const bool has_second = args.dst2.data != nullptr;
    const float* factors = args.factors == nullptr ? nullptr : args.factors + at;
    each_register(n, [&](int64_t i, int count) {
      Vf y = fma(load(buffer + i) - of.mean, splat(factor), shift);
      if (args.gamma != nullptr) y = y * load_some(args.gamma + at + i, count);
      if (args.beta != nullptr) y = y + load_some(args.beta + at + i, count);
      if (factors != nullptr && has_second)
        store(scratch + i, y * load_some(factors + i, count));
      else if (factors != nullptr)
        y = y * load_some(factors + i, count);
      store_some(dst + i, y, count);
    });
    if (!is_f32) store_f32(dst, n, args.dst, offset + at, false);
    if (!has_second) return;
    store_f32(factors == nullptr ? dst : scratch, n, args.dst2, offset + at, false);
  }

  template <class F>
  void each_block(const F& f) const {
    for (int64_t at = 0; at < args.n; at += kBlock) {
      f(at, args.n - at < kBlock ? args.n - at : kBlock);
    }
  }

  bool is_short() const { return args.n <= kBlock; }
  bool has_mean() const { return args.kind == Norm::kLayer || args.kind == Norm::kCentre; }

  float mean() const {
    double sum = 0;
    each_block([&](int64_t at, int64_t length) {
      sum += static_cast<double>(load_block(at, length, true));
    });
    if (!has_mean()) return 0.0F;
    return static_cast<float>(sum / static_cast<double>(args.n));
  }

  Statistics statistics(float mean) const {
    double plain = 0;
    double square = 0;
    each_block([&](int64_t at, int64_t length) {
      if (!is_short()) load_block(at, length, false);
      add_sums(length, mean, plain, square);
    });
    const double count = static_cast<double>(args.n);
    const double rest = has_mean() ? plain / count : 0.0;
    const double epsilon = static_cast<double>(args.epsilon);
    const double variance = square / count - rest * rest;
    double divisor = ::sqrt((variance < 0.0 ? 0.0 : variance) + epsilon);
    if (args.kind == Norm::kL2) divisor = ::sqrt(square) > epsilon ? ::sqrt(square) : epsilon;
    const double factor = square != square ? square : 1.0 / divisor;
    return {mean, static_cast<float>(rest), static_cast<float>(factor)};
  }

  void finish(int64_t row, const Statistics& of) const {
    each_block([&](int64_t at, int64_t length) {
      if (!is_short()) load_block(at, length, false);
      finish_block(at, length, of);
    });
    if (args.mean != nullptr) args.mean[row] = of.mean + of.rest;
    if (args.inv_std != nullptr) args.inv_std[row] = of.factor;
  }
};

// What a row waits for (its mean, its factor) is hidden behind the other rows of a group.
constexpr int64_t kGroup = 4;

}  // namespace

void norm_rows(const NormArgs& args, int64_t lo, int64_t hi) {
  alignas(64) float buffer[kBlock + kLanes];
  alignas(64) float scratch[kBlock + kLanes];
  const int64_t pitch = (args.n + kLanes - 1) / kLanes * kLanes;
  const int64_t in_group = pitch <= kBlock / kGroup ? kGroup : 1;
  Statistics of[kGroup];
  for (int64_t r = lo; r < hi; r += in_group) {
    const int64_t count = hi - r < in_group ? hi - r : in_group;
    auto each_row = [&](const auto& body) {
      for (int64_t i = 0; i < count; ++i)
        body(NormRow{args, (r + i) * args.n, buffer + i * pitch, scratch}, i);
    };
    each_row([&](const NormRow& row, int64_t i) { of[i].mean = row.mean(); });
    each_row([&](const NormRow& row, int64_t i) { of[i] = row.statistics(of[i].mean); });
    each_row([&](const NormRow& row, int64_t i) { row.finish(r + i, of[i]); });
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
