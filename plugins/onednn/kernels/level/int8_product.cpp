// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit quantized values, widened to 16 bits; contract in ../int8_product.h. A tile is
// some rows times one panel: its sums stay in registers over all of k.

#include "epilogue.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kColumns = static_cast<int>(kInt8Panel);
constexpr int kRegisters = kColumns / kLanes;  // of a row's sums

// 16-bit numbers of one register: `kLanes` columns of two.
#if defined(__AVX512F__)
constexpr int kRows = 12;
inline __m512i widen_signed(const void* p) {
  return _mm512_cvtepi8_epi16(load_vector<__m256i>(p));
}
inline __m512i widen_unsigned(const void* p) {
  return _mm512_cvtepu8_epi16(load_vector<__m256i>(p));
}
inline Vi multiply_pairs(Vi a, __m512i b) {
  return reinterpret_cast<Vi>(_mm512_madd_epi16(reinterpret_cast<__m512i>(a), b));
}
#elif defined(__AVX2__)
constexpr int kRows = 6;
inline __m256i widen_signed(const void* p) {
  return _mm256_cvtepi8_epi16(load_vector<__m128i>(p));
}
inline __m256i widen_unsigned(const void* p) {
  return _mm256_cvtepu8_epi16(load_vector<__m128i>(p));
}
inline Vi multiply_pairs(Vi a, __m256i b) {
  return reinterpret_cast<Vi>(_mm256_madd_epi16(reinterpret_cast<__m256i>(a), b));
}
#else
constexpr int kRows = 2;
inline __m128i widen_signed(const void* p) {
  return _mm_cvtepi8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
inline __m128i widen_unsigned(const void* p) {
  return _mm_cvtepu8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
inline Vi multiply_pairs(Vi a, __m128i b) {
  return reinterpret_cast<Vi>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), b));
}
#endif
constexpr int kWords = kVectorBytes / 2;
using Words = VectorOf<int16_t, kWords>::Type;

// One operation after the other on a whole tile; one function, so that tiles stay small.
[[gnu::noinline]] void apply_all(const Epilogue& epilogue, const TileOf& tile, Vf* y) {
  for (int i = 0; i < epilogue.n_ops; ++i)
    apply<kRegisters>(epilogue, epilogue.ops[i], tile, y);
}

template <class To>
constexpr bool kStoresSums = false;
template <>
constexpr bool kStoresSums<int32_t> = true;

// GCC keeps the sums in registers only where all loops over them are unrolled.
template <int rows, class To>
void multiply_tile(const Int8Block& block, int64_t row, int64_t column) {
  Vi sums[rows][kRegisters];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      sums[r][v] = Vi{};
  const int64_t width = 2 * block.pairs;
  const int16_t* const a = block.rows + row * width;
  const int8_t* b = block.panels + column * width;
#pragma GCC unroll 2
  for (int64_t k = 0; k < block.pairs; ++k, b += 2 * kColumns) {
    decltype(widen_signed(b)) right[kRegisters];
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      right[v] = widen_signed(b + v * kWords);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const Vi left = splat_i(load_vector<int32_t>(a + r * width + 2 * k));
#pragma GCC unroll 16
      for (int v = 0; v < kRegisters; ++v)
        sums[r][v] += multiply_pairs(left, right[v]);
    }
  }
  const Epilogue& epilogue = block.epilogue;
  const Finish<kRegisters> finish(epilogue);
  To* const to = static_cast<To*>(epilogue.dst.data) + row * epilogue.dst_stride + column;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      sums[r][v] += block.row_shifts[row + r];
  if constexpr (kStoresSums<To>) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      finish(to + r * epilogue.dst_stride, sums[r], column);
  } else {
    Vf y[rows][kRegisters];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kRegisters; ++v)
        y[r][v] = to_float(sums[r][v]);
      finish.scale(y[r], column, y[r]);
    }
    if (epilogue.n_ops > 0) apply_all(epilogue, {row, column, rows}, y[0]);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      finish(to + r * epilogue.dst_stride, y[r], column);
  }
}

template <int rows, class To>
void multiply_rest(const Int8Block& block, int64_t row, int64_t column) {
  if constexpr (rows > 0) {
    if (block.n_rows - row == rows) return multiply_tile<rows, To>(block, row, column);
    multiply_rest<rows - 1, To>(block, row, column);
  }
}

template <class To>
void multiply(const Int8Block& block) {
  for (int64_t column = 0; column < block.epilogue.columns; column += kColumns) {
    int64_t row = 0;
    for (; row + kRows <= block.n_rows; row += kRows)
      multiply_tile<kRows, To>(block, row, column);
    multiply_rest<kRows - 1, To>(block, row, column);
  }
}

}  // namespace

void int8_block(const Int8Block& block) {
  of_sum_type(block.epilogue.dst.type, [&]<class To>() { multiply<To>(block); });
}

void widen_int8(const uint8_t* quantized, bool is_signed, int32_t zero, int64_t n, int16_t* dst) {
  Words zeros = Words{} + static_cast<int16_t>(zero);
  int64_t i = 0;
  for (; i + kWords <= n; i += kWords) {
    const Words wide = is_signed ? reinterpret_cast<Words>(widen_signed(quantized + i))
                                 : reinterpret_cast<Words>(widen_unsigned(quantized + i));
    const Words centred = wide - zeros;
    std::memcpy(dst + i, &centred, sizeof centred);
  }
  for (; i < n; ++i) {
    const int32_t code = is_signed ? static_cast<int8_t>(quantized[i]) : quantized[i];
    dst[i] = static_cast<int16_t>(code - zero);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
