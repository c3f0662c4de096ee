// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of floats; contract in ../float_depthwise.h. A piece of work is two rows of
// results.

#include "../float_depthwise.h"

#include "depthwise_tiles.h"
#include "epilogue.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {
namespace {

// Square windows whose size and stride the compiler knows. Results of a tile: as many as keep their
// sums in registers.
template <int kTaps_, int kStride_>
struct Square {
  static constexpr int kTaps = kTaps_, kStrideY = kStride_, kStrideX = kStride_;
  static constexpr int kRows = kStride_ == 1 ? 2 : 1;
  static constexpr int kColumns = 4;
};

// So many channels go along a row together that their weights stay in the nearest cache.
constexpr int64_t channels_at_once(int64_t taps) {
  const int64_t fits = (16 << 10) / static_cast<int64_t>(sizeof(float)) / taps;
  return fits / kFloatDepthwiseBlock > 0 ? fits / kFloatDepthwiseBlock * kFloatDepthwiseBlock
                                         : kFloatDepthwiseBlock;
}

[[gnu::noinline]] void apply_ops(const FloatDepthwiseArgs& args, Vf* y, int n) {
  const Epilogue no_operands;
  for (int i = 0; i < args.n_ops; ++i)
    apply<1>(no_operands, args.ops[i], {0, 0, n}, y);
}

template <class T>
class Images {
 public:
  explicit Images(const FloatDepthwiseArgs& args)
      : args_(args), padded_(float_depthwise_channels(args.channels)) {}

  // Results [y, y + n) of an image, n being 1 or 2.
  template <class S>
  void run_square(int64_t image, int64_t y, int64_t n) const {
    if (n == 2 && S::kRows == 2) return run_rows<S, 2>(image, y);
    for (int64_t row = y; row < y + n; ++row)
      run_rows<S, 1>(image, row);
  }
  void run_any(int64_t image, int64_t y, int64_t n) const {
    for (int64_t row = y; row < y + n; ++row)
      for (int64_t x = 0; x < args_.windows.out_width; ++x)
        run_place(image, row, x);
  }

 private:
  template <class S, int kRows>
  void run_rows(int64_t image, int64_t y) const {
    constexpr int64_t kAtOnce = channels_at_once(S::kTaps * S::kTaps);
    const TileRows<T, S, kRows> rows(args_, image, y);
    for (int64_t c = 0; c < args_.channels; c += kAtOnce) {
      const int64_t end = c + kAtOnce < args_.channels ? c + kAtOnce : args_.channels;
      each_tile<S>(args_.windows.out_width, [&]<int kColumns>(int64_t x) {
        WindowTile<T, S, kRows, kColumns> tile;
        tile.place(args_, rows, x);
        run_tile(tile, c, end);
      });
    }
  }

  // Channels [c, end), the last register of them beginning as far back as it must.
  template <class S, int kRows, int kColumns>
  void run_tile(const WindowTile<T, S, kRows, kColumns>& tile, int64_t c, int64_t end) const {
    for (; c + kLanes <= end; c += kLanes)
      run_lanes<true>(tile, c, kLanes);
    if (c < end && end >= kLanes) return run_lanes<true>(tile, end - kLanes, kLanes);
    if (c < end) run_lanes<false>(tile, c, end - c);
  }

  template <bool is_full, class S, int kRows, int kColumns>
  TENON_INLINE void run_lanes(const WindowTile<T, S, kRows, kColumns>& tile,
                              int64_t c,
                              int64_t n) const {
    using Of = WindowTile<T, S, kRows, kColumns>;
    const float* const weights = args_.weights + c;
    Vf y[kRows * kColumns];
    for (Vf& sum : y)
      sum = load(args_.bias + c);
#pragma GCC unroll 8
    for (int i = 0; i < Of::kPixelRows; ++i) {
#pragma GCC unroll 16
      for (int k = 0; k < Of::kSeen; ++k) {
        const Vf x =
            is_full ? load_lanes(tile.pixels[i][k] + c) : load_lanes_part(tile.pixels[i][k] + c, n);
#pragma GCC unroll 2
        for (int r = 0; r < kRows; ++r) {
          const int row = i - r * S::kStrideY;
          if (row < 0 || row >= S::kTaps) continue;
#pragma GCC unroll 4
          for (int q = 0; q < kColumns; ++q) {
            const int tap = k - q * S::kStrideX;
            if (tap < 0 || tap >= S::kTaps) continue;
            Vf& sum = y[r * kColumns + q];
            sum = fma(x, load(weights + (row * S::kTaps + tap) * padded_), sum);
          }
        }
      }
    }
    if (args_.n_ops > 0) apply_ops(args_, y, kRows * kColumns);
#pragma GCC unroll 8
    for (int i = 0; i < kRows * kColumns; ++i)
      store<is_full>(tile.results[i] + c, y[i], n);
  }

  // One result of any window.
  void run_place(int64_t image, int64_t y, int64_t x) const {
    const Windows& w = args_.windows;
    T* const to = result<T>(args_, image, y, x);
    for (int64_t c = 0; c < args_.channels; c += kLanes) {
      const int64_t n = args_.channels - c < kLanes ? args_.channels - c : kLanes;
      const float* weights = args_.weights + c;
      Vf sum = load(args_.bias + c);
      for (int64_t i = 0; i < w.window_height; ++i)
        for (int64_t k = 0; k < w.window_width; ++k, weights += padded_) {
          const T* const from = pixel<T>(args_, image, y * w.stride_y - w.pad_top + i * w.step_y,
                                         x * w.stride_x - w.pad_left + k * w.step_x) +
                                c;
          sum = fma(n == kLanes ? load_lanes(from) : load_lanes_part(from, n), load(weights), sum);
        }
      apply_ops(args_, &sum, 1);
      n == kLanes ? store<true>(to + c, sum, n) : store<false>(to + c, sum, n);
    }
  }

  template <bool is_full>
  TENON_INLINE void store(T* to, Vf y, int64_t n) const {
    const Vf inside = bounded(y, args_.low, args_.high);
    is_full ? store_lanes(to, inside) : store_lanes_part(to, inside, n);
  }

  const FloatDepthwiseArgs& args_;
  int64_t padded_;  // channels of the weights
};

template <class T>
void run_pair(const FloatDepthwiseArgs& args, int64_t image, int64_t y) {
  const Images<T> images(args);
  const Windows& w = args.windows;
  const int64_t n = y + 1 < w.out_height ? 2 : 1;
  if (!shares_float_depthwise(w)) return images.run_any(image, y, n);
  const bool is_strided = w.stride_x == 2;
  switch (w.window_width) {
    case 3:
      return is_strided ? images.template run_square<Square<3, 2>>(image, y, n)
                        : images.template run_square<Square<3, 1>>(image, y, n);
    case 5:
      return is_strided ? images.template run_square<Square<5, 2>>(image, y, n)
                        : images.template run_square<Square<5, 1>>(image, y, n);
    default:
      return is_strided ? images.template run_square<Square<7, 2>>(image, y, n)
                        : images.template run_square<Square<7, 1>>(image, y, n);
  }
}

}  // namespace

void float_depthwise_rows(const FloatDepthwiseArgs& args, int64_t lo, int64_t hi) {
  const int64_t pairs = (args.windows.out_height + 1) / 2;
  for (int64_t i = lo; i < hi; ++i) {
    if (args.type == ElementType::kBf16)
      run_pair<Bf16>(args, i / pairs, i % pairs * 2);
    else
      run_pair<float>(args, i / pairs, i % pairs * 2);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
