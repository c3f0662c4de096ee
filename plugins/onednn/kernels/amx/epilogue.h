// SPDX-License-Identifier: Apache-2.0
#pragma once
// What becomes of two rows of sums of one panel. Epilogues that are frequent and short are inlined
// between the steps of the next product; all others are one function.

#include "../level/epilogue.h"
#include "../tile_product_args.h"

namespace tenon::onednn::kernels::amx {

constexpr int kRegisters = 2;  // of one row of a panel
constexpr int kColumns = static_cast<int>(kTilePanel);
static_assert(kLanes * kRegisters == kColumns);

// Of the operations: none, kTableGelu, kGeluErf, kAdd of an operand as large as the result, any.
enum class Shape : uint8_t { kPlain, kGelu, kErfGelu, kResidual, kGeneral };

inline Vi load_sums(const int32_t* sums) {
  return load_vector<Vi>(sums);
}

// Which row of the result a row of sums is: behind each `width` of them, the last `gap` are of no
// row. They come to be the first rows behind, which the next sums then replace.
struct RowGaps {
  int64_t first = 0;  // row of the result
  int64_t width = int64_t{1} << 40;
  int64_t gap = 0;

  int64_t row(int64_t i) const { return first + i - i / width * gap; }
  // Sums from number i on whose rows follow each other.
  int64_t run(int64_t i) const { return width - i % width; }
};

// Any operations and any number of columns.
class GeneralEpilogue {
 public:
  GeneralEpilogue(const Epilogue& epilogue, bool has_integers)
      : epilogue_(epilogue), has_integers_(has_integers), row_epilogue_(epilogue) {}

  template <int rows>
  [[gnu::noinline]] void store(const int32_t* sums, int64_t row, int64_t column) const {
    if (epilogue_.dst.type == ElementType::kI32) return store_integers<rows>(sums, row, column);
    Vf y[rows * kRegisters];
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r) {
      Vf* const of_row = y + r * kRegisters;
      for (int v = 0; v < kRegisters; ++v)
        of_row[v] = has_integers_ ? to_float(load_sums(sums + r * kColumns + v * kLanes))
                                  : from_bits(load_sums(sums + r * kColumns + v * kLanes));
      row_epilogue_.scale(of_row, column, of_row);
    }
    for (int i = 0; i < epilogue_.n_ops; ++i)
      apply<kRegisters>(epilogue_, epilogue_.ops[i], {row, column, rows}, y);
    switch (epilogue_.dst.type) {
      case ElementType::kU8:
        return store_as<rows, uint8_t>(y, row, column);
      case ElementType::kS8:
        return store_as<rows, int8_t>(y, row, column);
      case ElementType::kBf16:
        return store_as<rows, Bf16>(y, row, column);
      default:
        return store_as<rows, float>(y, row, column);
    }
  }

 private:
  template <int rows>
  void store_integers(const int32_t* sums, int64_t row, int64_t column) const {
    for (int r = 0; r < rows; ++r) {
      const Vi of_row[] = {load_sums(sums + r * kColumns), load_sums(sums + r * kColumns + kLanes)};
      row_epilogue_.store(place<int32_t>(row + r, column), of_row, column);
    }
  }
  template <int rows, class To>
  TENON_INLINE void store_as(const Vf* y, int64_t row, int64_t column) const {
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r)
      row_epilogue_.store(place<To>(row + r, column), y + r * kRegisters, column);
  }
  template <class To>
  TENON_INLINE To* place(int64_t row, int64_t column) const {
    return static_cast<To*>(epilogue_.dst.data) + row * epilogue_.dst_stride + column;
  }

  const Epilogue& epilogue_;
  bool has_integers_;
  RowEpilogue<kRegisters> row_epilogue_;
};

// How floats become bytes: bounds and the zero point are those of 16-bit integers behind rounding,
// which is monotonic.
struct ByteBounds {
  __m512i least = {}, most = {}, zero = {};
  bool is_needed = false;    // more than the type's own bounds
  bool may_overflow = true;  // a result may be no 32-bit integer

  ByteBounds(const Epilogue& epilogue, bool may_overflow_) : may_overflow(may_overflow_) {
    const Target& dst = epilogue.dst;
    const auto zero_point = static_cast<float>(dst.quant.zero_point);
    const float first = dst.type == ElementType::kS8 ? -128.0F : 0.0F;
    const float last = first + 255;
    auto inside = [&](float bound) {
      const float shifted = __builtin_rintf(bound) + zero_point;
      return shifted < first ? first : (shifted > last ? last : shifted);
    };
    const float low = inside(epilogue.low), high = inside(epilogue.high);
    is_needed = low != first || high != last || zero_point != 0;
    least = _mm512_set1_epi16(static_cast<int16_t>(low));
    most = _mm512_set1_epi16(static_cast<int16_t>(high));
    zero = _mm512_set1_epi16(static_cast<int16_t>(dst.quant.zero_point));
  }
  TENON_INLINE __m512i operator()(__m512i words) const {
    return _mm512_min_epi16(_mm512_max_epi16(_mm512_adds_epi16(words, zero), least), most);
  }
};

// The largest magnitude of what a table's GELU is multiplied with in these columns; NaN stays.
inline float largest_factor(const Epilogue& epilogue,
                            const EpilogueOp& op,
                            int64_t column,
                            int64_t columns) {
  if (op.other.data == nullptr) return __builtin_fabsf(op.alpha);
  const auto* factors = static_cast<const float*>(op.other.data);
  float most = 0;
  for (int64_t i = column; i < column + columns && i < epilogue.columns; ++i) {
    const float factor = __builtin_fabsf(op.alpha * factors[i]);
    most = factor <= most || most != most ? most : factor;
  }
  return most;
}

// Whether sums of so large a magnitude may leave the range of 32-bit integers in these columns.
inline bool may_overflow(const Epilogue& epilogue, float sum, int64_t column, int64_t columns) {
  float other = 0;
  float factor = 1;
  for (int i = 0; i < epilogue.n_ops; ++i) {
    const EpilogueOp& op = epilogue.ops[i];
    if (op.kind == EpilogueOp::Kind::kTableGelu) {  // GELU is no larger than what it is of
      factor *= largest_factor(epilogue, op, column, columns);
      continue;
    }
    if (op.other.quant.scale == 0.0F) return true;
    other += 512.0F * __builtin_fabsf(op.alpha * op.other.quant.scale);
  }
  Vf most = splat(other);
  for (int64_t i = column; i < column + columns; i += kLanes) {
    const Vf of = fma(absolute(load(epilogue.scales + i)), splat(sum),
                      absolute(load(epilogue.bias + i)) + other);
    most = of < most ? most : of;  // NaN stays
  }
  return !(fold_lanes(most, [](Vf a, Vf b) { return a < b ? b : a; }) * factor < 1e9F);
}

// The rows of one panel that wait for their epilogue, with scales and bias of the panel in
// registers. From: the elements of a residual. A function of its own, as the loop around the
// products leaves it no registers.
template <bool has_integers, class To, Shape shape, class From>
class PanelEpilogue {
 public:
  PanelEpilogue(const Epilogue& epilogue, const RowGaps& gaps, bool may_overflow)
      : epilogue_(epilogue),
        gaps_(gaps),
        bounds_(epilogue, may_overflow),
        is_bounded_(epilogue.low != -kInfinity || epilogue.high != kInfinity) {
    if constexpr (shape == Shape::kGelu) {
      factor_ = epilogue.ops[0].alpha;
      factors_ = static_cast<const float*>(epilogue.ops[0].other.data);
    }
    if constexpr (shape == Shape::kResidual) set_residual(epilogue.ops[0]);
  }

  // An even number of rows of sums, from this one of the unit on.
  TENON_INLINE void wait(const int32_t* sums, int64_t first, int64_t column, int rows) {
    const int64_t row = gaps_.row(first);
    run_ = gaps_.run(first);
    sums_ = sums;
    column_ = column;
    pairs_ = rows / 2;
    to_ = static_cast<To*>(epilogue_.dst.data) + row * epilogue_.dst_stride + column;
    if constexpr (shape == Shape::kResidual) {
      const EpilogueOp& op = epilogue_.ops[0];
      from_ = static_cast<const From*>(op.other.data) + row * op.row_stride + column;
    }
  }
  TENON_INLINE int rows() const { return 2 * pairs_; }
  // So many rows, or those that are left.
  TENON_INLINE void take(int rows) {
    if (pairs_ > 0) store(rows / 2 < pairs_ ? rows / 2 : pairs_);
  }

 private:
  static constexpr float kInfinity = __builtin_inff();
  static constexpr bool kIsByte = sizeof(To) == 1;

  // alpha * scale * (quantized - zero) as one fused operation; the zero point goes to the bias.
  void set_residual(const EpilogueOp& op) {
    const bool is_quantized = op.other.quant.scale != 0.0F;
    factor_ = is_quantized ? op.alpha * op.other.quant.scale : op.alpha;
    if (is_quantized) shift_ = static_cast<float>(op.other.quant.zero_point) * factor_;
  }

  [[gnu::noinline]] void store(int pairs) {
    const Vf scales[] = {load(epilogue_.scales + column_),
                         load(epilogue_.scales + column_ + kLanes)};
    const Vf bias[] = {load(epilogue_.bias + column_) - shift_,
                       load(epilogue_.bias + column_ + kLanes) - shift_};
    Vf factors[] = {splat(factor_), splat(factor_)};
    if (factors_ != nullptr)
      for (int i = 0; i < kRegisters; ++i)
        factors[i] = factors[i] * load(factors_ + column_ + i * kLanes);
    const int64_t stride = epilogue_.dst_stride;
    const int64_t from_stride = shape == Shape::kResidual ? epilogue_.ops[0].row_stride : 0;
    const int32_t* sums = sums_;
    int64_t run = run_;
    const From* from[] = {from_, from_};
    To* to[] = {to_, to_};
    auto advance = [&](const From** next_from, To** next_to) {
      int64_t rows = 1;
      if (--run == 0) {
        run = gaps_.width;
        rows -= gaps_.gap;
      }
      *next_from += rows * from_stride;
      *next_to += rows * stride;
      // Two pointers in one vector register would take the place of sums in its units.
      asm("" : "+r"(*next_from), "+r"(*next_to));
    };
    for (int left = pairs; left > 0; --left) {
      from[1] = from[0];
      to[1] = to[0];
      advance(&from[1], &to[1]);
      Vf y[2 * kRegisters];
#pragma GCC unroll 4
      for (int i = 0; i < 2 * kRegisters; ++i) {
        const Vi loaded = load_sums(sums + i * kLanes);
        const Vf sum = has_integers ? to_float(loaded) : from_bits(loaded);
        y[i] = fma(sum, scales[i % kRegisters], bias[i % kRegisters]);
        if constexpr (shape == Shape::kGelu) y[i] = table_gelu(y[i]) * factors[i % kRegisters];
        if constexpr (shape == Shape::kErfGelu) y[i] = erf_gelu(y[i]);
        if constexpr (shape == Shape::kResidual) {
          y[i] = fma(load_lanes(from[i / kRegisters] + i % kRegisters * kLanes), factors[0], y[i]);
        }
      }
      if constexpr (kIsByte) {
        store_bytes(y, to);
      } else {
        store_floats(y, to);
      }
      sums += 2 * kColumns;
      from[0] = from[1];
      to[0] = to[1];
      advance(&from[0], &to[0]);
    }
    sums_ = sums;
    from_ = from[0];
    to_ = to[0];
    run_ = run;
    pairs_ -= pairs;
  }

  TENON_INLINE void store_floats(const Vf* y, To* const* to) const {
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kRegisters; ++i) {
      const Vf inside = is_bounded_ ? clamp(y[i], epilogue_.low, epilogue_.high) : y[i];
      store_lanes(to[i / kRegisters] + i % kRegisters * kLanes, inside);
    }
  }

  TENON_INLINE void store_bytes(const Vf* y, To* const* to) const {
    auto words = [&](int i) { return _mm512_packs_epi32(integers(y[i]), integers(y[i + 1])); };
    __m512i upper = words(0);
    __m512i lower = words(2);
    if (bounds_.is_needed) {
      upper = bounds_(upper);
      lower = bounds_(lower);
    }
    const __m512i bytes = static_cast<To>(-1) < To{} ? _mm512_packs_epi16(upper, lower)
                                                     : _mm512_packus_epi16(upper, lower);
    // Packing went by quarters of registers.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i rows = _mm512_permutexvar_epi32(order, bytes);
    const __m256i first = _mm512_castsi512_si256(rows);
    const __m256i second = _mm512_extracti64x4_epi64(rows, 1);
    std::memcpy(to[0], &first, sizeof first);
    std::memcpy(to[1], &second, sizeof second);
  }
  // What is too large for an integer would become the smallest one, as NaN shall.
  TENON_INLINE __m512i integers(Vf y) const {
    const Vf inside = bounds_.may_overflow ? min_fast(splat(1e9F), y) : y;
    return reinterpret_cast<__m512i>(round_to_int(inside));
  }

  const Epilogue& epilogue_;
  const RowGaps& gaps_;
  ByteBounds bounds_;
  bool is_bounded_;
  float factor_ = 0;
  const float* factors_ = nullptr;  // of the columns; null: none
  float shift_ = 0;
  const int32_t* sums_ = nullptr;
  int64_t column_ = 0;
  int pairs_ = 0;    // that wait
  int64_t run_ = 0;  // of sums until the next gap has ended
  To* to_ = nullptr;
  const From* from_ = nullptr;
};

}  // namespace tenon::onednn::kernels::amx
