// SPDX-License-Identifier: Apache-2.0
// Attention of one head; contract in ../tile_attention.h.

#include "../attention_args.h"
#include "../level/elements.h"
#include "../level/vector_math.h"
#include "attention_pack.h"
#include "tiles.h"

namespace tenon::onednn::kernels::amx {
namespace {

constexpr float kLog2e = 1.4426950408889634F;

// 2^z for z <= 0 with a relative error of 2^-13.7, for what is rounded to bf16: the fraction by a
// polynomial on [0, 1), a minimax fit, the rest as an exponent. Under 2^-126, where masked scores
// are, it gives 0: an underflow would cost the CPU some 60 ns.
inline Vf short_exp2(Vf z) {
  const Vf f = _mm512_reduce_ps(z, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  Vf p = splat(7.802450656890869e-2F);
  p = fma(p, f, splat(2.260672003030777e-1F));
  p = fma(p, f, splat(6.958335041999817e-1F));
  p = fma(p, f, splat(9.999251961708069e-1F));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(z, splat(-126.0F), _CMP_NLT_UQ), p, z);
}

// Rows of a left operand times all panels of a packed right one, as f32: dst[row][panel * 32 + n].
struct Product {
  const char* left;
  int64_t left_stride;  // bytes
  const uint16_t* right;
  int64_t steps;  // of k
  int64_t panels;
  float* dst;
  int64_t dst_stride;  // elements
};

template <bool has_lower>
void multiply(const Product& p) {
  const int64_t stride = p.dst_stride * 4;
  const char* right = reinterpret_cast<const char*>(p.right);
  for (int64_t panel = 0; panel < p.panels; ++panel) {
    const char* upper = p.left;
    const char* lower = p.left + 16 * p.left_stride;
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (has_lower) {
      _tile_zero(2);
      _tile_zero(3);
    }
    for (int64_t step = 0; step < p.steps; ++step) {
      _tile_loadd(6, right, kTileDepth);
      _tile_loadd(4, upper, p.left_stride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, right + 1024, kTileDepth);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (has_lower) {
        _tile_loadd(5, lower, p.left_stride);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      upper += kTileDepth;
      lower += kTileDepth;
      right += 2048;
    }
    float* const to = p.dst + panel * kTilePanel;
    _tile_stored(0, to, stride);
    _tile_stored(1, to + 16, stride);
    if constexpr (has_lower) {
      _tile_stored(2, to + 16 * p.dst_stride, stride);
      _tile_stored(3, to + 16 * p.dst_stride + 16, stride);
    }
  }
}

class Head {
 public:
  Head(const TileAttentionArgs& args, const AttentionScratch& scratch, char* memory)
      : args_(args),
        scratch_(scratch),
        keys_(reinterpret_cast<uint16_t*>(memory + scratch.keys_at)),
        values_(reinterpret_cast<uint16_t*>(memory + scratch.values_at)),
        rows_(reinterpret_cast<uint16_t*>(memory + scratch.rows_at)),
        scores_(reinterpret_cast<float*>(memory + scratch.scores_at)),
        weights_(reinterpret_cast<uint16_t*>(memory + scratch.weights_at)),
        mask_(reinterpret_cast<float*>(memory + scratch.mask_at)) {}

  // Rows of a head that comes later into L2: they lie far from each other, where no hardware
  // foresees them.
  void prefetch(int64_t outer, int64_t inner) const {
    auto rows = [&](const uint16_t* data, const AttentionStrides& s, int64_t n, int64_t columns) {
      const uint16_t* const at = data + outer * s.outer + inner * s.inner;
      for (int64_t row = 0; row < n; ++row)
        for (int64_t i = 0; i < columns; i += 32)
          _mm_prefetch(reinterpret_cast<const char*>(at + row * s.row + i), _MM_HINT_T1);
    };
    rows(args_.q, args_.q_strides, args_.rows, args_.depth);
    if (args_.k_strides.column == 1) rows(args_.k, args_.k_strides, args_.keys, args_.depth);
    if (args_.v_strides.column == 1) rows(args_.v, args_.v_strides, args_.keys, args_.width);
  }

  void run(int64_t outer, int64_t inner) {
    auto at = [&](const auto* data, const AttentionStrides& strides) {
      return data + outer * strides.outer + inner * strides.inner;
    };
    pack_right({at(args_.k, args_.k_strides), args_.k_strides.column, args_.k_strides.row,
                args_.depth, args_.keys},
               keys_);
    pack_right({at(args_.v, args_.v_strides), args_.v_strides.row, args_.v_strides.column,
                args_.keys, args_.width},
               values_);
    const float* const mask = args_.mask == nullptr ? nullptr : at(args_.mask, args_.mask_strides);
    if (mask == nullptr || args_.mask_strides.row == 0) set_mask(mask);
    const uint16_t* const q = at(args_.q, args_.q_strides);
    char* const dst = static_cast<char*>(args_.dst.data) +
                      (outer * args_.dst_strides.outer + inner * args_.dst_strides.inner) *
                          element_bytes(args_.dst.type);
    for (int64_t row = 0; row < args_.rows; row += kTileRows) {
      const int64_t left = args_.rows - row;
      block(q, mask, dst, row, static_cast<int>(left < kTileRows ? left : kTileRows));
    }
  }

 private:
  // In powers of 2; what lies behind the last key takes no part.
  void set_mask(const float* mask) {
    for (int64_t i = 0; i < scratch_.padded_keys; ++i) {
      const float value = mask == nullptr ? 0.0F : mask[i < args_.keys ? i : 0] * kLog2e;
      mask_[i] = i < args_.keys ? value : -__builtin_inff();
    }
  }

  void block(const uint16_t* q, const float* mask, char* dst, int64_t row, int rows) {
    const char* left = reinterpret_cast<const char*>(q + row * args_.q_strides.row);
    int64_t left_stride = args_.q_strides.row * 2;
    if (args_.depth * 2 != scratch_.depth_bytes) {
      copy_rows(left, left_stride, rows);
      left = reinterpret_cast<const char*>(rows_);
      left_stride = scratch_.depth_bytes;
    }
    const int upper = rows < 16 ? rows : 16;
    tiles_.configure(upper, rows - upper);
    const int64_t keys = scratch_.padded_keys;
    product(rows, {left, left_stride, keys_, scratch_.depth_bytes / kTileDepth, keys / kTilePanel,
                   scores_, keys});
    float sums[kTileRows];
    for (int i = 0; i < rows; ++i) {
      if (mask != nullptr && args_.mask_strides.row != 0)
        set_mask(mask + (row + i) * args_.mask_strides.row);
      sums[i] = normalize(i);
    }
    asm volatile("" ::: "memory");
    const int64_t width = (args_.width + kTilePanel - 1) / kTilePanel * kTilePanel;
    product(rows, {reinterpret_cast<const char*>(weights_), keys * 2, values_, keys / 32,
                   width / kTilePanel, scores_, width});
    for (int i = 0; i < rows; ++i)
      store(scores_ + i * width, 1.0F / sums[i], dst, row + i);
  }

  void copy_rows(const char* from, int64_t stride, int rows) {
    const auto bytes = static_cast<size_t>(args_.depth * 2);
    for (int i = 0; i < rows; ++i) {
      char* const to = reinterpret_cast<char*>(rows_) + i * scratch_.depth_bytes;
      std::memcpy(to, from + i * stride, bytes);
      std::memset(to + bytes, 0, static_cast<size_t>(scratch_.depth_bytes) - bytes);
    }
    asm volatile("" ::: "memory");
  }

  static void product(int rows, const Product& product) {
    if (rows > 16)
      multiply<true>(product);
    else
      multiply<false>(product);
  }

  // The exponentials of one row of scores, as bf16; returns their sum.
  float normalize(int row) {
    const int64_t keys = scratch_.padded_keys;
    float* const x = scores_ + row * keys;
    const Vf scale = splat(args_.scale * kLog2e);
    Vf top[2] = {splat(-__builtin_inff()), splat(-__builtin_inff())};
    for (int64_t i = 0; i < keys; i += 2 * kLanes) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const Vf y = fma(load(x + i + v * kLanes), scale, load(mask_ + i + v * kLanes));
        store_lanes(x + i + v * kLanes, y);
        top[v] = max_fast(y, top[v]);
      }
    }
    // A NaN among the scores shows in the sum, so that the maximum need not show it.
    const Vf most =
        splat(fold_lanes(max_fast(top[0], top[1]), [](Vf a, Vf b) { return max_fast(a, b); }));
    Vf sum[2] = {};
    uint16_t* const to = weights_ + row * keys;
    for (int64_t i = 0; i < keys; i += 2 * kLanes) {
      const Vf low = short_exp2(load(x + i) - most);
      const Vf high = short_exp2(load(x + i + kLanes) - most);
      sum[0] += low;
      sum[1] += high;
      const __m512bh words = _mm512_cvtne2ps_pbh(high, low);
      std::memcpy(to + i, &words, sizeof words);
    }
    return sum_lanes(sum[0] + sum[1]);
  }

  void store(const float* y, float factor, char* dst, int64_t row) const {
    const int64_t first = row * args_.dst_strides.row;
    switch (args_.dst.type) {
      case ElementType::kU8:
        return store_quantized(y, factor, reinterpret_cast<uint8_t*>(dst) + first);
      case ElementType::kS8:
        return store_quantized(y, factor, reinterpret_cast<int8_t*>(dst) + first);
      case ElementType::kBf16:
        return store_as(y, reinterpret_cast<Bf16*>(dst) + first, [&](Vf x) { return x * factor; });
      default:
        return store_as(y, reinterpret_cast<float*>(dst) + first, [&](Vf x) { return x * factor; });
    }
  }
  template <class Code>
  void store_quantized(const float* y, float factor, Code* to) const {
    const float steps = factor / args_.dst.quant.scale;
    const auto zero = static_cast<float>(args_.dst.quant.zero_point);
    store_as(y, to, [&](Vf x) { return round_even(x * steps) + zero; });
  }
  template <class To, class F>
  void store_as(const float* y, To* to, const F& f) const {
    int64_t i = 0;
    for (; i + kLanes <= args_.width; i += kLanes)
      store_lanes(to + i, f(load(y + i)));
    if (i < args_.width) store_lanes_part(to + i, f(load(y + i)), args_.width - i);
  }

  const TileAttentionArgs& args_;
  const AttentionScratch& scratch_;
  uint16_t* keys_;
  uint16_t* values_;
  uint16_t* rows_;
  float* scores_;
  uint16_t* weights_;
  float* mask_;
  Tiles tiles_;
};

}  // namespace

void attention_unit(const TileAttentionArgs& args,
                    const AttentionScratch& scratch,
                    char* memory,
                    int64_t pair,
                    bool has_next) {
  Head head(args, scratch, memory);
  if (has_next) head.prefetch((pair + 1) / args.inner, (pair + 1) % args.inner);
  head.run(pair / args.inner, pair % args.inner);
}

}  // namespace tenon::onednn::kernels::amx
