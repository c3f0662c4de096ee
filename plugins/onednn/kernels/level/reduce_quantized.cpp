// SPDX-License-Identifier: Apache-2.0
// Sums and means of 8-bit columns; contract in ../reduce.h. They are added as integers, in 16 bits
// as long as those hold them.

#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int64_t kRows = 128;  // of 255 at most: within 16 bits

constexpr int64_t kWords = kVectorBytes / 2;
static_assert(kWords <= kInt8Lanes);

// Of kWords columns.
template <class T>
void sum_columns(const T* src, int64_t k, int64_t pitch, int32_t* sums) {
  for (int64_t i = 0; i < kWords; ++i)
    sums[i] = 0;
  for (int64_t first = 0; first < k; first += kRows) {
    const int64_t end = k - first < kRows ? k : first + kRows;
    Int16s part = {};
    for (int64_t row = first; row < end; ++row)
      part += widen_to_words(src + row * pitch);
    int16_t words[kWords];
    std::memcpy(words, &part, sizeof part);
    for (int64_t i = 0; i < kWords; ++i)
      sums[i] += words[i];
  }
}

// What a sum of quantized values stands for.
struct Meaning {
  explicit Meaning(const ReduceArgs& args) {
    const Quant& quant = args.src.quant;
    const double count = static_cast<double>(args.k);
    scale = (quant.scale == 0.0F ? 1.0 : static_cast<double>(quant.scale)) /
            (args.kind == Reduction::kMean ? count : 1.0);
    zero = quant.scale == 0.0F ? 0.0 : count * quant.zero_point;
  }
  float operator()(int32_t sum) const { return static_cast<float>((sum - zero) * scale); }
  double scale;
  double zero;
};

int64_t common_divisor(int64_t a, int64_t b) {
  return b == 0 ? a : common_divisor(b, a % b);
}

// Fewer columns than a register has: so many rows that they are whole registers count as one.
template <class T>
void run_narrow(const ReduceArgs& args, int64_t outer) {
  const T* src = static_cast<const T*>(args.src.data) + outer * args.k * args.inner;
  const int64_t rows = kWords / common_divisor(args.inner, kWords);
  const int64_t width = rows * args.inner;
  const int64_t whole = args.k / rows;
  int32_t totals[kInt8Lanes] = {};
  for (int64_t at = 0; at < width; at += kWords) {
    int32_t sums[kWords];
    sum_columns(src + at, whole, width, sums);
    for (int64_t i = 0; i < kWords; ++i)
      totals[(at + i) % args.inner] += sums[i];
  }
  for (int64_t i = whole * width; i < args.k * args.inner; ++i)
    totals[i % args.inner] += src[i];
  const Meaning meaning(args);
  alignas(64) float results[kInt8Lanes];
  for (int64_t i = 0; i < args.inner; ++i)
    results[i] = meaning(totals[i]);
  store_f32(results, args.inner, args.dst, outer * args.inner, false);
}

template <class T>
void run(const ReduceArgs& args, int64_t outer, int64_t column, int64_t n) {
  if (args.inner < kWords) return run_narrow<T>(args, outer);
  const T* src = static_cast<const T*>(args.src.data) + outer * args.k * args.inner;
  const Meaning meaning(args);
  alignas(64) float results[kReduceBlock];
  for (int64_t at = 0; at < n; at += kWords) {
    int32_t sums[kWords];
    // The last registers reach back into columns that are done, or before this block.
    const int64_t past = column + at + kWords - args.inner;
    const int64_t back = past > 0 ? past : 0;
    sum_columns(src + column + at - back, args.k, args.inner, sums);
    for (int64_t i = back; i < kWords && at + i - back < n; ++i)
      results[at + i - back] = meaning(sums[i]);
  }
  store_f32(results, n, args.dst, outer * args.inner + column, false);
}

}  // namespace

void sum_quantized(const ReduceArgs& args, int64_t lo, int64_t hi) {
  const int64_t blocks = (args.inner + kReduceBlock - 1) / kReduceBlock;
  for (int64_t piece = lo; piece < hi; ++piece) {
    const int64_t column = piece % blocks * kReduceBlock;
    const int64_t n = args.inner - column < kReduceBlock ? args.inner - column : kReduceBlock;
    args.src.type == ElementType::kS8 ? run<int8_t>(args, piece / blocks, column, n)
                                      : run<uint8_t>(args, piece / blocks, column, n);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
