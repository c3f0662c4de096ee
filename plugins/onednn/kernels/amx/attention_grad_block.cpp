// SPDX-License-Identifier: Apache-2.0
// The gradient of attention of one head; contract in ../tile_attention_grad.h.

#include "../attention_grad_args.h"
#include "../level/elements.h"
#include "../level/vector_math.h"
#include "../prefetch.h"
#include "attention_exp.h"
#include "attention_pack.h"
#include "attention_product.h"

namespace tenon::onednn::kernels::amx {
namespace {

constexpr int64_t kRows = kTilePanel;  // of q at once, in two registers
static_assert(kRows == 2 * kLanes);

inline int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// to[row][column] = the matrix, zeros up to padded_rows and padded_columns.
void copy_left(const Matrix& rows, int64_t padded_rows, int64_t padded_columns, uint16_t* to) {
  for (int64_t row = 0; row < padded_rows; ++row, to += padded_columns) {
    const int64_t columns = row < rows.n ? rows.k : 0;
    const uint16_t* const from = rows.data + row * rows.n_stride;
    if (rows.k_stride == 1)
      std::memcpy(to, from, static_cast<size_t>(columns) * 2);
    else
      for (int64_t i = 0; i < columns; ++i)
        to[i] = from[i * rows.k_stride];
    std::memset(to + columns, 0, static_cast<size_t>(padded_columns - columns) * 2);
  }
}

// to[column][row] of a matrix [rows][columns]; both extents are multiples of 32.
void transpose_left(const uint16_t* from, int64_t rows, int64_t columns, uint16_t* to) {
  for (int64_t row = 0; row < rows; row += 32)
    for (int64_t column = 0; column < columns; column += 16) {
      __m512i pairs[16];  // pairs[i][j]: rows 2 i and 2 i + 1 of column j
      pack_tile({from, columns, 1, rows, columns}, row, column, reinterpret_cast<uint16_t*>(pairs));
      transpose_16(pairs);
      for (int64_t i = 0; i < 16; ++i)
        std::memcpy(to + (column + i) * rows + row, pairs + i, sizeof pairs[i]);
    }
}

// to[i][j] = from[j][i], 16 by 16 of f32.
void transpose_floats(const float* from, int64_t stride, __m512i* to) {
  for (int i = 0; i < 16; ++i)
    to[i] = load_words(from + i * stride);
  transpose_16(to);
}

class Head {
 public:
  Head(const TileAttentionGradArgs& args,
       const AttentionGradScratch& scratch,
       char* memory,
       int64_t outer,
       int64_t inner)
      : args_(args), scratch_(scratch), memory_(memory), outer_(outer), inner_(inner) {
    tiles_.configure(16, 16);
  }

  void run() {
    const Matrix k = matrix(args_.k, args_.k_strides, args_.keys, args_.depth);
    const Matrix v = matrix(args_.v, args_.v_strides, args_.keys, args_.width);
    copy_left(k, scratch_.padded_keys, scratch_.padded_depth, words(scratch_.k_at));
    copy_left(v, scratch_.padded_keys, scratch_.padded_width, words(scratch_.v_at));
    if (args_.dq.data != nullptr)
      transpose_left(words(scratch_.k_at), scratch_.padded_keys, scratch_.padded_depth,
                     words(scratch_.k_columns_at));
    for (int64_t row = 0; row < args_.rows; row += kAttentionChunk)
      chunk(row, least(kAttentionChunk, args_.rows - row));
    store_sums(args_.dk, scratch_.dk_at, scratch_.padded_depth, args_.depth);
    store_sums(args_.dv, scratch_.dv_at, scratch_.padded_width, args_.width);
  }

 private:
  uint16_t* words(int64_t at) const { return reinterpret_cast<uint16_t*>(memory_ + at); }
  float* floats(int64_t at) const { return reinterpret_cast<float*>(memory_ + at); }

  template <class T>
  T* at(T* data, const AttentionStrides& strides) const {
    return data + outer_ * strides.outer + inner_ * strides.inner;
  }
  // n: rows of the operand, k: its columns.
  Matrix matrix(const uint16_t* data,
                const AttentionStrides& s,
                int64_t rows,
                int64_t columns) const {
    return {at(data, s), s.column, s.row, columns, rows};
  }
  static Matrix rows_of(const Matrix& whole, int64_t first, int64_t count) {
    return {whole.data + first * whole.n_stride, whole.k_stride, whole.n_stride, whole.k, count};
  }
  static Matrix summed_over_rows(const Matrix& m) {
    return {m.data, m.n_stride, m.k_stride, m.n, m.k};
  }

  void chunk(int64_t first, int64_t count) {
    const Matrix q =
        rows_of(matrix(args_.q, args_.q_strides, args_.rows, args_.depth), first, count);
    const Matrix dy =
        rows_of(matrix(args_.dy, args_.dy_strides, args_.rows, args_.width), first, count);
    pack_right(q, words(scratch_.q_at));
    pack_right(dy, words(scratch_.dy_at));
    pack_right(summed_over_rows(q), words(scratch_.q_sum_at));
    pack_right(summed_over_rows(dy), words(scratch_.dy_sum_at));
    asm volatile("" ::: "memory");
    for (int64_t row = 0; row < count; row += kRows)
      block(first, row, least(kRows, count - row));
    const int64_t steps = (count + 31) / 32;
    if (args_.dk.data != nullptr)
      add_sums(scratch_.scores_grad_at, scratch_.q_sum_at, steps, scratch_.padded_depth,
               scratch_.dk_at, first > 0);
    if (args_.dv.data != nullptr)
      add_sums(scratch_.weights_at, scratch_.dy_sum_at, steps, scratch_.padded_width,
               scratch_.dv_at, first > 0);
  }

  // sums += left' right over the rows of a chunk; sums: [keys][width].
  void add_sums(
      int64_t left_at, int64_t right_at, int64_t steps, int64_t width, int64_t to, bool adds) {
    for (int64_t key = 0; key < scratch_.padded_keys; key += 32) {
      const Product product{reinterpret_cast<const char*>(words(left_at) + key * kAttentionChunk),
                            kAttentionChunk * 2,
                            words(right_at),
                            steps,
                            width / kTilePanel,
                            floats(to) + key * width,
                            width};
      if (adds)
        multiply<true, true>(product);
      else
        multiply<true>(product);
    }
  }

  // 32 rows of a chunk.
  void block(int64_t first, int64_t row, int64_t count) {
    by_keys(scratch_.k_at, scratch_.padded_depth, scratch_.q_at, row, scratch_.scores_at);
    by_keys(scratch_.v_at, scratch_.padded_width, scratch_.dy_at, row, scratch_.weights_grad_at);
    asm volatile("" ::: "memory");
    differentiate(first + row, row, count);
    asm volatile("" ::: "memory");
    if (args_.dq.data != nullptr) store_dq(first + row, count);
  }

  // dst[key][row] of f32: the keys' rows times 32 rows of a chunk.
  void by_keys(int64_t left_at, int64_t width, int64_t right_at, int64_t row, int64_t to) {
    for (int64_t key = 0; key < scratch_.padded_keys; key += 32)
      multiply<true>({reinterpret_cast<const char*>(words(left_at) + key * width), width * 2,
                      words(right_at) + row * width, width / 32, 1, floats(to) + key * kRows,
                      kRows});
  }

  // Adds a key's mask to two registers of scores, in powers of 2; row: the first of the block.
  struct Mask {
    const float* data;
    int64_t key_stride;
    bool is_of_rows;
    int64_t count;

    void add(int64_t key, Vf* y) const {
      if (data == nullptr) return;
      const float* const from = data + key * key_stride;
      for (int i = 0; i < 2; ++i) {
        const int64_t n = count - i * kLanes;
        const Vf mask = !is_of_rows   ? splat(*from)
                        : n >= kLanes ? load(from + i * kLanes)
                                      : load_part(from + i * kLanes, n < 0 ? 0 : n, 0.0F);
        y[i] = fma(mask, splat(kLog2e), y[i]);
      }
    }
  };

  // Scores become weights and ds: by keys, as left operands, and ds as a right one.
  void differentiate(int64_t row, int64_t column, int64_t count) {
    float* const scores = floats(scratch_.scores_at);
    const float* const dw = floats(scratch_.weights_grad_at);
    const bool is_of_rows = args_.mask_strides.row != 0;
    const float* const mask = args_.mask == nullptr ? nullptr : at(args_.mask, args_.mask_strides);
    exponentials(scores, dw,
                 {mask == nullptr || !is_of_rows ? mask : mask + row, args_.mask_strides.column,
                  is_of_rows, count});
    uint16_t* const weights = words(scratch_.weights_at) + column;
    uint16_t* const grads = words(scratch_.scores_grad_at) + column;
    uint16_t* const right = words(scratch_.scores_right_at);
    for (int64_t key = 0; key < scratch_.padded_keys; key += 2)
      for (int64_t i = 0; i < 2; ++i)
        store_pair(scores + key * kRows + i * kLanes, dw + key * kRows + i * kLanes, i, key,
                   weights, grads,
                   right + key / 32 * kPanelStep + i * (kPanelStep / 2) + key % 32 * 16);
  }

  // What a column of scores was divided by, and sum(dw * w).
  void exponentials(float* scores, const float* dw, const Mask& mask) {
    const Vf scale = splat(args_.scale * kLog2e);
    Vf top[2] = {splat(-__builtin_inff()), splat(-__builtin_inff())};
    for (int64_t key = 0; key < args_.keys; ++key) {
      float* const at = scores + key * kRows;
      Vf y[2] = {load(at) * scale, load(at + kLanes) * scale};
      mask.add(key, y);
      for (int i = 0; i < 2; ++i) {
        store_lanes(at + i * kLanes, y[i]);
        top[i] = max_fast(y[i], top[i]);
      }
    }
    Vf sum[2] = {}, dot[2] = {};
    for (int64_t key = 0; key < args_.keys; ++key)
      for (int i = 0; i < 2; ++i) {
        float* const at = scores + key * kRows + i * kLanes;
        const Vf e = short_exp2(load(at) - top[i]);
        store_lanes(at, e);
        sum[i] += e;
        dot[i] = fma(e, load(dw + key * kRows + i * kLanes), dot[i]);
      }
    for (int i = 0; i < 2; ++i) {
      factor_[i] = splat(1.0F) / sum[i];
      mean_[i] = dot[i] * factor_[i];
    }
    // What lies behind the last key takes no part.
    for (int64_t i = args_.keys * kRows; i < scratch_.padded_keys * kRows; ++i)
      scores[i] = 0.0F;
  }

  // Two keys, 16 rows.
  void store_pair(const float* e,
                  const float* dw,
                  int64_t half,
                  int64_t key,
                  uint16_t* weights,
                  uint16_t* grads,
                  uint16_t* right) const {
    const Vf scale = splat(args_.scale);
    Vf w[2], ds[2];
    for (int i = 0; i < 2; ++i) {
      w[i] = load(e + i * kRows) * factor_[half];
      ds[i] = w[i] * scale * (load(dw + i * kRows) - mean_[half]);
    }
    store_rows(w, weights + key * kAttentionChunk + half * kLanes);
    const __m512i both = store_rows(ds, grads + key * kAttentionChunk + half * kLanes);
    const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(both));
    const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(both, 1));
    const __m512i pairs = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
    std::memcpy(right, &pairs, sizeof pairs);
  }
  // As bf16, the first key's in front.
  static __m512i store_rows(const Vf* x, uint16_t* to) {
    const __m512bh rounded = _mm512_cvtne2ps_pbh(x[1], x[0]);
    __m512i both;
    std::memcpy(&both, &rounded, sizeof both);
    const __m256i low = _mm512_castsi512_si256(both);
    const __m256i high = _mm512_extracti64x4_epi64(both, 1);
    std::memcpy(to, &low, sizeof low);
    std::memcpy(to + kAttentionChunk, &high, sizeof high);
    return both;
  }

  // dq of 32 rows: its transpose is made, 32 columns at a time.
  void store_dq(int64_t row, int64_t count) {
    float* const made = floats(scratch_.dq_at);
    const int64_t keys = scratch_.padded_keys;
    for (int64_t column = 0; column < args_.depth; column += 32) {
      multiply<true>({reinterpret_cast<const char*>(words(scratch_.k_columns_at) + column * keys),
                      keys * 2, words(scratch_.scores_right_at), keys / 32, 1, made, kRows});
      asm volatile("" ::: "memory");
      for (int64_t c = 0; c < least(32, args_.depth - column); c += 16)
        for (int64_t r = 0; r < count; r += 16)
          store_dq_block(made + c * kRows + r, row + r, least(16, count - r), column + c);
    }
  }
  void store_dq_block(const float* made, int64_t row, int64_t rows, int64_t column) {
    __m512i transposed[16];
    transpose_floats(made, kRows, transposed);
    for (int64_t r = 0; r < rows; ++r)
      store(reinterpret_cast<const float*>(transposed + r), least(16, args_.depth - column),
            args_.dq, row + r, column);
  }

  void store_sums(const AttentionGradTarget& to, int64_t from, int64_t pitch, int64_t columns) {
    if (to.data == nullptr) return;
    asm volatile("" ::: "memory");
    for (int64_t key = 0; key < args_.keys; ++key)
      store(floats(from) + key * pitch, columns, to, key, 0);
  }

  void store(
      const float* x, int64_t n, const AttentionGradTarget& to, int64_t row, int64_t column) const {
    const AttentionStrides& s = to.strides;
    const int64_t first = outer_ * s.outer + inner_ * s.inner + row * s.row + column;
    if (to.type == ElementType::kBf16)
      store_as(x, n, static_cast<Bf16*>(to.data) + first);
    else
      store_as(x, n, static_cast<float*>(to.data) + first);
  }
  template <class To>
  static void store_as(const float* x, int64_t n, To* to) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      store_lanes(to + i, load(x + i));
    if (i < n) store_lanes_part(to + i, load_part(x + i, n - i, 0.0F), n - i);
  }

  const TileAttentionGradArgs& args_;
  const AttentionGradScratch& scratch_;
  char* memory_;
  int64_t outer_, inner_;
  Vf factor_[2] = {}, mean_[2] = {};
  Tiles tiles_;
};

}  // namespace

void attention_grad_unit(const TileAttentionGradArgs& args,
                         const AttentionGradScratch& scratch,
                         char* memory,
                         int64_t pair,
                         bool has_next) {
  if (has_next) {
    const int64_t next_outer = (pair + 1) / args.inner, next_inner = (pair + 1) % args.inner;
    prefetch_pair(args, next_outer, next_inner);
    prefetch_rows(args.dy, args.dy_strides, next_outer, next_inner, args.rows, args.width);
  }
  Head(args, scratch, memory, pair / args.inner, pair % args.inner).run();
}

}  // namespace tenon::onednn::kernels::amx
