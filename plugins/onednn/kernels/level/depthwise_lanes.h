// SPDX-License-Identifier: Apache-2.0
#pragma once
// What depthwise windows of bytes of all sizes have in common: lanes of four pixels, and what
// becomes of a block of sums. With AVX-512 VNNI 32 channels are four registers of 32-bit lanes
// in the order of depthwise_lane().

#include "depthwise_tiles.h"
#include "epilogue.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

constexpr int kPixels = static_cast<int>(kDepthwisePixels);
constexpr int64_t kGroupBytes = kDepthwiseBlock * kDepthwisePixels;  // of weights

using Kind = EpilogueOp::Kind;

// An activation and a positive factor behind it, as a result in 8 bits has them.
static inline bool is_scaled(const DepthwiseArgs& args, Kind activation) {
  return args.n_ops == 2 && args.ops[0].kind == activation && args.ops[1].kind == Kind::kLinear &&
         args.ops[1].beta == 0.0F && args.ops[1].alpha > 0.0F;
}

// No part of the tiles, so that all of them share its code.
[[gnu::noinline]] static void apply_ops(const DepthwiseArgs& args, Vf* y, int n) {
  if (args.n_ops == 0) return;
  if (is_scaled(args, Kind::kSwish)) {
    const Vf alpha = splat(args.ops[0].alpha), scale = splat(args.ops[1].alpha);
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i)
      y[i] = swish(y[i], alpha) * scale;
    return;
  }
  const Epilogue no_operands;
  for (int i = 0; i < args.n_ops; ++i)
    apply<1>(no_operands, args.ops[i], {0, 0, n}, y);
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
  __m256i p[kPixels];
  for (int i = 0; i < kPixels; ++i)
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

  explicit TENON_VNNI Rounding(const DepthwiseArgs& args)
      : zero(_mm256_set1_epi16(args.zero)),
        low(_mm256_set1_epi8(static_cast<char>(args.low))),
        high(_mm256_set1_epi8(static_cast<char>(args.high))),
        flip(_mm256_set1_epi8(static_cast<char>(args.dst_flip))) {}
};

// Beyond 2^31 the conversion would turn the sign.
TENON_VNNI __m256i rounded(__m256 y) {
  return _mm256_cvtps_epi32(_mm256_min_ps(y, _mm256_set1_ps(65536.0F)));
}

// A block of scaled sums.
struct Scaled32 {
  __m256 v[4];
};

TENON_VNNI Scaled32 scaled(const DepthwiseArgs& args, const Lanes32& sum, int64_t c) {
  Scaled32 y;
  for (int i = 0; i < 4; ++i)
    y.v[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum.v[i]), _mm256_loadu_ps(args.scales + c + 8 * i),
                             _mm256_loadu_ps(args.bias + c + 8 * i));
  return y;
}

// To bytes in the order of channels: packing within 128 bits undoes the unpacking.
TENON_VNNI __m256i to_bytes(const Scaled32& y, const Rounding& to) {
  __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(rounded(y.v[0]), rounded(y.v[1])), to.zero);
  __m256i b = _mm256_adds_epi16(_mm256_packs_epi32(rounded(y.v[2]), rounded(y.v[3])), to.zero);
  __m256i bytes = _mm256_packus_epi16(a, b);
  bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, to.low), to.high);
  return _mm256_xor_si256(bytes, to.flip);
}

template <bool kFull>
TENON_VNNI void store_bytes(uint8_t* to, __m256i y, __mmask32 mask) {
  kFull ? _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), y)
        : _mm256_mask_storeu_epi8(to, mask, y);
}

// So cheap that it stays in the tiles' registers.
TENON_VNNI void scaled_hard_swish(const DepthwiseArgs& args, Scaled32* y, int n) {
  const float factor = args.ops[1].alpha;
  const __m256 alpha = _mm256_set1_ps(args.ops[0].alpha * factor);
  const __m256 beta = _mm256_set1_ps(args.ops[0].beta * factor), most = _mm256_set1_ps(factor);
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    for (__m256& x : y[i].v) {
      const __m256 gate = _mm256_max_ps(_mm256_fmadd_ps(x, alpha, beta), _mm256_setzero_ps());
      x = _mm256_mul_ps(x, _mm256_min_ps(gate, most));
    }
  }
}

// Sums of n results to their places; many at once, so that the long chains of an activation
// overlap.
template <bool kFull, int n>
TENON_VNNI void apply_epilogue(const DepthwiseArgs& args,
                               const Rounding& to,
                               const Lanes32* sums,
                               uint8_t* const* results,
                               int64_t c,
                               __mmask32 mask) {
  Scaled32 y[n];
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i)
    y[i] = scaled(args, sums[i], c);
  if (is_scaled(args, Kind::kHardSwish)) {
    scaled_hard_swish(args, y, n);
  } else if (args.n_ops > 0) {
    Vf whole[n * 2];
#pragma GCC unroll 8
    for (int i = 0; i < n * 2; ++i)
      whole[i] = _mm512_insertf32x8(_mm512_castps256_ps512(y[i / 2].v[i % 2 * 2]),
                                    y[i / 2].v[i % 2 * 2 + 1], 1);
    apply_ops(args, whole, n * 2);
#pragma GCC unroll 8
    for (int i = 0; i < n * 2; ++i) {
      y[i / 2].v[i % 2 * 2] = _mm512_castps512_ps256(whole[i]);
      y[i / 2].v[i % 2 * 2 + 1] = _mm512_extractf32x8_ps(whole[i], 1);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i)
    store_bytes<kFull>(results[i] + c, to_bytes(y[i], to), mask);
}

#endif

}  // namespace tenon::onednn::kernels::TENON_LEVEL
