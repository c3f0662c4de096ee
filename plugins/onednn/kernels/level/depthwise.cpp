// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of bytes; contract in ../depthwise.h. A piece of work is two rows of
// results.

#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kTaps = static_cast<int>(kDepthwiseTaps);
constexpr int kWindow = 4;  // pixels of a 32-bit lane

const uint8_t* pixel(const DepthwiseArgs& args, int64_t image, int64_t y, int64_t x) {
  if (y < 0 || y >= args.height || x < 0 || x >= args.width) return args.outside;
  return args.src + ((image * args.height + y) * args.width + x) * args.channels;
}

uint8_t* result(const DepthwiseArgs& args, int64_t image, int64_t y, int64_t x) {
  return args.dst + ((image * args.out_height + y) * args.out_width + x) * args.channels;
}

#if defined(__AVX512BW__)

#define TENON_VNNI __attribute__((target("avx512vnni"), always_inline)) inline

// 32 channels as 32-bit lanes, in the order of depthwise_lane().
struct Lanes32 {
  __m256i v[4];
};

template <bool kFull>
TENON_VNNI __m256i load_bytes(const uint8_t* from, __mmask32 mask, __m256i flip) {
  __m256i x = kFull ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))
                    : _mm256_maskz_loadu_epi8(mask, from);
  return _mm256_xor_si256(x, flip);
}

// The four pixels of each channel side by side.
template <bool kFull>
TENON_VNNI Lanes32
load_window(const uint8_t* const* pixels, int64_t c, __mmask32 mask, __m256i flip) {
  __m256i p[kWindow];
  for (int i = 0; i < kWindow; ++i)
    p[i] = load_bytes<kFull>(pixels[i] + c, mask, flip);
  __m256i low01 = _mm256_unpacklo_epi8(p[0], p[1]), high01 = _mm256_unpackhi_epi8(p[0], p[1]);
  __m256i low23 = _mm256_unpacklo_epi8(p[2], p[3]), high23 = _mm256_unpackhi_epi8(p[2], p[3]);
  return {{_mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
           _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)}};
}

TENON_VNNI void add_products(Lanes32& sum, const Lanes32& x, const int8_t* weights) {
  for (int i = 0; i < 4; ++i) {
    __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights) + i);
    sum.v[i] = _mm256_dpbusd_epi32(sum.v[i], x.v[i], w);
  }
}

struct Rounding {
  __m256i zero, low, high, flip;
};

// Sums to bytes in the order of channels: packing within 128 bits undoes the unpacking.
TENON_VNNI __m256i to_bytes(const Lanes32& sum,
                            const float* scales,
                            const float* bias,
                            const Rounding& to) {
  __m256i q[4];
  for (int i = 0; i < 4; ++i) {
    __m256 y = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum.v[i]), _mm256_loadu_ps(scales + 8 * i),
                               _mm256_loadu_ps(bias + 8 * i));
    // Beyond 2^31 the conversion would turn the sign.
    q[i] = _mm256_cvtps_epi32(_mm256_min_ps(y, _mm256_set1_ps(65536.0F)));
  }
  __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(q[0], q[1]), to.zero);
  __m256i b = _mm256_adds_epi16(_mm256_packs_epi32(q[2], q[3]), to.zero);
  __m256i y = _mm256_packus_epi16(a, b);
  y = _mm256_min_epu8(_mm256_max_epu8(y, to.low), to.high);
  return _mm256_xor_si256(y, to.flip);
}

template <bool kFull>
TENON_VNNI void store_bytes(uint8_t* to, __m256i y, int64_t n) {
  if (kFull) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), y);
  } else if (n == 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(y));
  } else {
    _mm256_mask_storeu_epi8(to, (__mmask32{1} << n) - 1, y);
  }
}

// Rows of pixels under kRows rows of results; a row outside of the image is one pixel again and
// again.
template <int kRows, int kStride>
struct PixelRows {
  static constexpr int kCount = (kRows - 1) * kStride + kTaps;
  const uint8_t* row[kCount];
  int64_t step[kCount];

  PixelRows(const DepthwiseArgs& args, int64_t image, int64_t y) {
    for (int i = 0; i < kCount; ++i) {
      row[i] = pixel(args, image, y * kStride - args.pad_top + i, 0);
      step[i] = row[i] == args.outside ? 0 : args.channels;
    }
  }
};

// kRows x kColumns results; two columns need stride 1.
template <int kRows, int kColumns, int kStride>
struct Tile {
  static constexpr int kPixelRows = PixelRows<kRows, kStride>::kCount;
  static constexpr int kPixels = kTaps + kColumns - 1;
  const uint8_t* pixels[kPixelRows][kWindow];
  uint8_t* results[kRows][kColumns];

  void place(const DepthwiseArgs& args, const PixelRows<kRows, kStride>& rows, int64_t x) {
    const int64_t left = x * kStride - args.pad_left;
    const bool is_inside = left >= 0 && left + kPixels <= args.width;
    for (int i = 0; i < kPixelRows; ++i) {
      for (int k = 0; k < kPixels; ++k) {
        const bool is_pixel = is_inside || (left + k >= 0 && left + k < args.width);
        pixels[i][k] = is_pixel ? rows.row[i] + (left + k) * rows.step[i] : args.outside;
      }
      if (kColumns == 1) pixels[i][kWindow - 1] = pixels[i][kTaps - 1];  // its weight is 0
    }
  }

  template <bool kFull>
  TENON_VNNI void block(const DepthwiseArgs& args, const Rounding& to, int64_t c) const {
    const int64_t n = args.channels - c;
    const __mmask32 mask = kFull ? ~__mmask32{0} : (__mmask32{1} << n) - 1;
    const __m256i flip = _mm256_set1_epi8(static_cast<char>(args.src_flip));
    const int8_t* weights = args.weights + c / kDepthwiseBlock * kDepthwiseWeightBytes;
    Lanes32 sums[kRows][kColumns] = {};
#pragma GCC unroll 8
    for (int i = 0; i < kPixelRows; ++i) {
      const Lanes32 x = load_window<kFull>(pixels[i], c, mask, flip);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        const int tap = i - r * kStride;
        if (tap < 0 || tap >= kTaps) continue;
#pragma GCC unroll 2
        for (int q = 0; q < kColumns; ++q)
          add_products(sums[r][q], x, weights + (q * kTaps + tap) * kDepthwiseBlock * 4);
      }
    }
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int q = 0; q < kColumns; ++q)
        store_bytes<kFull>(results[r][q] + c,
                           to_bytes(sums[r][q], args.scales + c, args.bias + c, to), n);
    }
  }

  __attribute__((target("avx512vnni"))) void run(const DepthwiseArgs& args) const {
    const Rounding to = {_mm256_set1_epi16(args.zero),
                         _mm256_set1_epi8(static_cast<char>(args.low)),
                         _mm256_set1_epi8(static_cast<char>(args.high)),
                         _mm256_set1_epi8(static_cast<char>(args.dst_flip))};
    int64_t c = 0;
    for (; c + kDepthwiseBlock <= args.channels; c += kDepthwiseBlock)
      block<true>(args, to, c);
    if (c < args.channels) block<false>(args, to, c);
  }
};

template <int kRows, int kColumns, int kStride>
void run_tile(const DepthwiseArgs& args,
              const PixelRows<kRows, kStride>& rows,
              uint8_t* const* results,
              int64_t x) {
  Tile<kRows, kColumns, kStride> tile;
  tile.place(args, rows, x);
  for (int r = 0; r < kRows; ++r)
    for (int q = 0; q < kColumns; ++q)
      tile.results[r][q] = results[r] + (x + q) * args.channels;
  tile.run(args);
}

template <int kRows, int kStride>
void run_rows(const DepthwiseArgs& args, int64_t image, int64_t y) {
  constexpr int kColumns = kStride == 1 ? 2 : 1;
  const PixelRows<kRows, kStride> rows(args, image, y);
  uint8_t* results[kRows];
  for (int r = 0; r < kRows; ++r)
    results[r] = result(args, image, y + r, 0);
  int64_t x = 0;
  for (; x + kColumns <= args.out_width; x += kColumns)
    run_tile<kRows, kColumns, kStride>(args, rows, results, x);
  if (x < args.out_width) run_tile<kRows, 1, kStride>(args, rows, results, x);
}

void run_vnni(const DepthwiseArgs& args, int64_t image, int64_t y) {
  const bool is_pair = y + 1 < args.out_height;
  if (args.stride == 1) {
    is_pair ? run_rows<2, 1>(args, image, y) : run_rows<1, 1>(args, image, y);
  } else {
    is_pair ? run_rows<2, 2>(args, image, y) : run_rows<1, 2>(args, image, y);
  }
}

#endif

void run_plain(const DepthwiseArgs& args, int64_t image, int64_t y, int64_t x) {
  uint8_t* const to = result(args, image, y, x);
  const uint8_t* pixels[kTaps][kTaps];
  for (int i = 0; i < kTaps; ++i)
    for (int k = 0; k < kTaps; ++k)
      pixels[i][k] = pixel(args, image, y * args.stride - args.pad_top + i,
                           x * args.stride - args.pad_left + k);
  for (int64_t c = 0; c < args.channels; ++c) {
    const int64_t block = c / kDepthwiseBlock;
    const int8_t* w = args.weights + block * kDepthwiseWeightBytes + depthwise_lane(c) * 4;
    int32_t sum = 0;
    for (int i = 0; i < kTaps; ++i)
      for (int k = 0; k < kTaps; ++k)
        sum += (pixels[i][k][c] ^ args.src_flip) * w[i * kDepthwiseBlock * 4 + k];
    const int64_t place = block * kDepthwiseBlock + depthwise_lane(c);
    float real = static_cast<float>(sum) * args.scales[place] + args.bias[place];
    real = real < -65536.0F ? -65536.0F : (real > 65536.0F ? 65536.0F : real);
    int32_t q = static_cast<int32_t>(__builtin_rintf(real)) + args.zero;
    q = q < args.low ? args.low : (q > args.high ? args.high : q);
    to[c] = static_cast<uint8_t>(q ^ args.dst_flip);
  }
}

// Two rows of results, or the last one.
void run_pair(const DepthwiseArgs& args, int64_t image, int64_t y) {
#if defined(__AVX512BW__)
  if (__builtin_cpu_supports("avx512vnni") != 0) return run_vnni(args, image, y);
#endif
  for (int64_t row = y; row < y + 2 && row < args.out_height; ++row)
    for (int64_t x = 0; x < args.out_width; ++x)
      run_plain(args, image, row, x);
}

}  // namespace

void depthwise_rows(const DepthwiseArgs& args, int64_t lo, int64_t hi) {
  const int64_t pairs = (args.out_height + 1) / 2;
  for (int64_t i = lo; i < hi; ++i)
    run_pair(args, i / pairs, i % pairs * 2);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
