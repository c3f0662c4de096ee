// SPDX-License-Identifier: Apache-2.0
// Weights to the 16 numbers that are multiplied, and sums of products to their gradient; contract
// in ../winograd.h.

#include "level.h"
#include "winograd_matrices.h"
#include "winograd_words.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kPlanes = static_cast<int>(kWinogradPlanes);

// The nine taps of kLanes input and output channels, outputs as neighbours.
struct Taps {
  alignas(kVectorBytes) float at[9][kLanes][kLanes];
};

void load_taps(const WinogradPack& p, int64_t in, int64_t out, Taps& taps) {
  const float* from = p.weights + in * p.in_stride + out * p.out_stride;
  for (int i = 0; i < 9; ++i) {
    const float* tap = from + (p.is_flipped ? 8 - i : i) * p.tap_stride;
    if (p.out_stride == 1) {
      for (int d = 0; d < kLanes; ++d)
        store(taps.at[i][d], load(tap + d * p.in_stride));
    } else if (p.in_stride == 1) {
      transpose_tile({tap, taps.at[i], p.out_stride, kLanes, kLanes, kLanes, 4});
    } else {
      for (int d = 0; d < kLanes; ++d) {
        for (int lane = 0; lane < kLanes; ++lane)
          taps.at[i][d][lane] = tap[d * p.in_stride + lane * p.out_stride];
      }
    }
  }
}

template <class Word>
void pack(const WinogradPack& p, int64_t in, int64_t out) {
  constexpr int kWord = Word::kWord;
  Taps taps;
  load_taps(p, in, out, taps);
  float* to = static_cast<float*>(p.packed) +
              (out / kWinogradColumns * (p.in / kWord) + in / kWord) * kWinogradColumns +
              out % kWinogradColumns;
  for (int d = 0; d < kLanes; d += kWord, to += kWinogradColumns) {
    Vf values[kWord][kPlanes];
    for (int w = 0; w < kWord; ++w) {
      Vf nine[9];
      for (int i = 0; i < 9; ++i)
        nine[i] = load(taps.at[i][d + w]);
      transform_weights(nine, values[w]);
    }
    for (int i = 0; i < kPlanes; ++i) {
      Vf word[kWord];
      for (int w = 0; w < kWord; ++w)
        word[w] = values[w][i];
      Word::put_words(to + i * p.plane, word);
    }
  }
}

}  // namespace

void winograd_pack(const WinogradPack& p, int64_t in, int64_t out) {
  for (int64_t i = in; i < in + kWinogradUnit; i += kLanes) {
    for (int64_t o = out; o < out + kWinogradUnit; o += kLanes) {
#if defined(__AVX512F__)
      if (p.type == ElementType::kBf16) {
        pack<Pair>(p, i, o);
        continue;
      }
#endif
      pack<Single>(p, i, o);
    }
  }
}

void winograd_finish(const WinogradFinish& f, int64_t lo, int64_t hi) {
  for (int64_t out = lo; out < hi; ++out) {
    for (int64_t in = 0; in < f.in; in += kLanes) {
      Vf sums[kPlanes];
      for (int i = 0; i < kPlanes; ++i)
        sums[i] = load(f.sums + i * f.plane + out * f.in + in);
      Vf taps[9];
      transform_sums(sums, taps);
      float* to = f.gradient + out * f.out_stride + in * f.in_stride;
      for (int tap = 0; tap < 9; ++tap) {
        if (f.in_stride == 1) {
          store(to + tap * f.tap_stride, taps[tap]);
          continue;
        }
        for (int lane = 0; lane < kLanes; ++lane)
          to[tap * f.tap_stride + lane * f.in_stride] = taps[tap][lane];
      }
    }
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
