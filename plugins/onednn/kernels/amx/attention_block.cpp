// SPDX-License-Identifier: Apache-2.0
// Attention of one head; contract in ../tile_attention.h.

#include "../attention_args.h"
#include "../level/elements.h"
#include "../level/vector_math.h"
#include "../prefetch.h"
#include "attention_exp.h"
#include "attention_pack.h"
#include "attention_product.h"

namespace tenon::onednn::kernels::amx {
namespace {

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
  template <class Integer>
  void store_quantized(const float* y, float factor, Integer* to) const {
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
  if (has_next) prefetch_pair(args, (pair + 1) / args.inner, (pair + 1) % args.inner);
  head.run(pair / args.inner, pair % args.inner);
}

}  // namespace tenon::onednn::kernels::amx
