// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of bytes; contract in ../depthwise.h. A piece of work is two rows of
// results.

#include "../instructions.h"
#include "depthwise_lanes.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

#if defined(__AVX512BW__)

// Square windows whose size and strides the compiler knows.
template <int kTaps_, int kStrideY_, int kStrideX_>
struct Square {
  static constexpr int kTaps = kTaps_, kStrideY = kStrideY_, kStrideX = kStrideX_;
  static constexpr Windows windows() {
    Windows w;
    w.window_height = w.window_width = kTaps;
    w.stride_y = kStrideY;
    w.stride_x = kStrideX;
    return w;
  }
  static constexpr int kColumns = static_cast<int>(depthwise_columns(windows()));
  static constexpr int kGroups = static_cast<int>(depthwise_groups(windows()));
  static constexpr int64_t kWeightBytes = depthwise_weight_bytes(windows());
};

// kRows x kColumns results.
template <class S, int kRows, int kColumns>
struct Tile : WindowTile<uint8_t, S, kRows, kColumns, S::kGroups * kPixels> {
  using Base = WindowTile<uint8_t, S, kRows, kColumns, S::kGroups * kPixels>;
  using Base::kPixelRows, Base::pixels, Base::results;

  template <bool kFull>
  TENON_VNNI void block(const DepthwiseArgs& args, const Rounding& to, int64_t c) const {
    const int64_t n = args.channels - c;
    const __mmask32 mask = kFull ? ~__mmask32{0} : (__mmask32{1} << n) - 1;
    const __m256i flip = _mm256_set1_epi8(static_cast<char>(args.src_flip));
    const int8_t* weights = args.weights + c / kDepthwiseBlock * S::kWeightBytes;
    Lanes32 sums[kRows][kColumns] = {};
#pragma GCC unroll 8
    for (int i = 0; i < kPixelRows; ++i) {
#pragma GCC unroll 2
      for (int g = 0; g < S::kGroups; ++g) {
        const Lanes32 x = load_window<kFull>(pixels[i] + g * kPixels, c, mask, flip);
#pragma GCC unroll 2
        for (int r = 0; r < kRows; ++r) {
          const int tap = i - r * S::kStrideY;
          if (tap < 0 || tap >= S::kTaps) continue;
#pragma GCC unroll 4
          for (int q = 0; q < kColumns; ++q)
            add_products(sums[r][q], x,
                         weights + ((q * S::kTaps + tap) * S::kGroups + g) * kGroupBytes);
        }
      }
    }
    apply_epilogue<kFull, kRows * kColumns>(args, to, sums[0], results, c, mask);
  }

  __attribute__((target("avx512vnni"))) void run(const DepthwiseArgs& args,
                                                 int64_t c,
                                                 int64_t end) const {
    const Rounding to(args);
    for (; c + kDepthwiseBlock <= end; c += kDepthwiseBlock)
      block<true>(args, to, c);
    if (c < end) block<false>(args, to, c);
  }
};

// So many channels go along a row together that their weights stay in the nearest cache.
template <class S>
constexpr int64_t kChannelsAtOnce =
    ((16 << 10) / S::kWeightBytes > 1 ? (16 << 10) / S::kWeightBytes : 1) * kDepthwiseBlock;

template <class S, int kRows>
void run_rows(const DepthwiseArgs& args, int64_t image, int64_t y) {
  const TileRows<uint8_t, S, kRows> rows(args, image, y);
  for (int64_t c = 0; c < args.channels; c += kChannelsAtOnce<S>) {
    const int64_t left = args.channels - c;
    const int64_t end = c + (left < kChannelsAtOnce<S> ? left : kChannelsAtOnce<S>);
    each_tile<S>(args.windows.out_width, [&]<int kColumns>(int64_t x) {
      Tile<S, kRows, kColumns> tile;
      tile.place(args, rows, x);  // its weights are 0 behind the last pixel
      tile.run(args, c, end);
    });
  }
}

// Two rows of results as one where there are registers for their sums.
template <class S>
void run_square(const DepthwiseArgs& args, int64_t image, int64_t y, int64_t n) {
  if constexpr (S::kColumns * 2 <= 4 && S::kGroups == 1) {
    n == 2 ? run_rows<S, 2>(args, image, y) : run_rows<S, 1>(args, image, y);
  } else {
    for (int64_t row = y; row < y + n; ++row)
      run_rows<S, 1>(args, image, row);
  }
}

template <int kTaps>
void run_strides(const DepthwiseArgs& args, int64_t image, int64_t y, int64_t n) {
  const bool is_wide = args.windows.stride_x == 2;
  if (args.windows.stride_y == 1) {
    is_wide ? run_square<Square<kTaps, 1, 2>>(args, image, y, n)
            : run_square<Square<kTaps, 1, 1>>(args, image, y, n);
  } else {
    is_wide ? run_square<Square<kTaps, 2, 2>>(args, image, y, n)
            : run_square<Square<kTaps, 2, 1>>(args, image, y, n);
  }
}

void run_vnni(const DepthwiseArgs& args, int64_t image, int64_t y, int64_t n) {
  args.windows.window_width == 3 ? run_strides<3>(args, image, y, n)
                                 : run_strides<5>(args, image, y, n);
}

#endif

// Also where four columns share their lanes: those of the first are nowhere shifted.
int32_t plain_sum(const DepthwiseArgs& args, int64_t image, int64_t top, int64_t left, int64_t c) {
  const Windows& w = args.windows;
  const int8_t* weights = args.weights + c / kDepthwiseBlock * depthwise_weight_bytes(w) +
                          depthwise_lane(c) * kDepthwisePixels;
  int32_t sum = 0;
  for (int64_t i = 0; i < w.window_height; ++i) {
    for (int64_t k = 0; k < w.window_width; ++k) {
      const uint8_t x = pixel<uint8_t>(args, image, top + i * w.step_y, left + k * w.step_x)[c];
      const int64_t group = i * depthwise_groups(w) + k / kDepthwisePixels;
      sum += (x ^ args.src_flip) * weights[group * kGroupBytes + k % kDepthwisePixels];
    }
  }
  return sum;
}

void run_plain(const DepthwiseArgs& args, int64_t image, int64_t y, int64_t x) {
  uint8_t* const to = result<uint8_t>(args, image, y, x);
  const Windows& w = args.windows;
  for (int64_t c = 0; c < args.channels; ++c) {
    const int32_t sum =
        plain_sum(args, image, y * w.stride_y - w.pad_top, x * w.stride_x - w.pad_left, c);
    const int64_t place = c / kDepthwiseBlock * kDepthwiseBlock + depthwise_lane(c);
    Vf whole = splat(static_cast<float>(sum) * args.scales[place] + args.bias[place]);
    apply_ops(args, &whole, 1);
    float real = whole[0];
    real = real < -65536.0F ? -65536.0F : (real > 65536.0F ? 65536.0F : real);
    int32_t q = static_cast<int32_t>(__builtin_rintf(real)) + args.zero;
    q = q < args.low ? args.low : (q > args.high ? args.high : q);
    to[c] = static_cast<uint8_t>(q ^ args.dst_flip);
  }
}

// Two rows of results, or the last one.
void run_pair(const DepthwiseArgs& args, int64_t image, int64_t y) {
  const int64_t n = y + 1 < args.windows.out_height ? 2 : 1;
#if defined(__AVX512BW__)
  if (shares_depthwise(args.windows) && instructions().avx512_vnni)
    return run_vnni(args, image, y, n);
#endif
  for (int64_t row = y; row < y + n; ++row)
    for (int64_t x = 0; x < args.windows.out_width; ++x)
      run_plain(args, image, row, x);
}

}  // namespace

void depthwise_rows(const DepthwiseArgs& args, int64_t lo, int64_t hi) {
  const int64_t pairs = (args.windows.out_height + 1) / 2;
  for (int64_t i = lo; i < hi; ++i)
    run_pair(args, i / pairs, i % pairs * 2);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
