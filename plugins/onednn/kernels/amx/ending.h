// SPDX-License-Identifier: Apache-2.0
#pragma once
// What becomes of two rows of sums of one panel. Endings that are frequent and short are inlined
// between the steps of the next product; all others are one function.

#include "../level/epilogue.h"
#include "../tile_product_args.h"

namespace tenon::onednn::kernels::amx {

constexpr int kRegisters = 2;  // of one row of a panel
constexpr int kColumns = static_cast<int>(kTilePanel);
static_assert(kLanes * kRegisters == kColumns);

// Of the operations: none, kShortGelu, kAdd of an operand as large as the result, any.
enum class Shape : uint8_t { kPlain, kGelu, kResidual, kGeneral };

inline Vi load_sums(const int32_t* sums) {
  return load_vector<Vi>(sums);
}

// Any operations and any number of columns.
class GeneralEnding {
 public:
  GeneralEnding(const Epilogue& epilogue, const int32_t* shifts, bool has_integers)
      : epilogue_(epilogue), shifts_(shifts), has_integers_(has_integers), finish_(epilogue) {}

  template <int rows>
  [[gnu::noinline]] void store(const int32_t* sums, int64_t row, int64_t column) const {
    if (epilogue_.dst.type == ElementType::kI32) return store_integers<rows>(sums, row, column);
    Vf y[rows * kRegisters];
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r) {
      Vf* const of_row = y + r * kRegisters;
      for (int v = 0; v < kRegisters; ++v)
        of_row[v] = has_integers_ ? to_float(integers(sums + r * kColumns, column, v))
                                  : from_bits(load_sums(sums + r * kColumns + v * kLanes));
      finish_.scale(of_row, column, of_row);
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
  TENON_INLINE Vi integers(const int32_t* sums, int64_t column, int v) const {
    const Vi loaded = load_sums(sums + v * kLanes);
    return shifts_ == nullptr ? loaded : loaded + load_sums(shifts_ + column + v * kLanes);
  }
  template <int rows>
  void store_integers(const int32_t* sums, int64_t row, int64_t column) const {
    for (int r = 0; r < rows; ++r) {
      const Vi of_row[] = {integers(sums + r * kColumns, column, 0),
                           integers(sums + r * kColumns, column, 1)};
      finish_(place<int32_t>(row + r, column), of_row, column);
    }
  }
  template <int rows, class To>
  TENON_INLINE void store_as(const Vf* y, int64_t row, int64_t column) const {
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r)
      finish_(place<To>(row + r, column), y + r * kRegisters, column);
  }
  template <class To>
  TENON_INLINE To* place(int64_t row, int64_t column) const {
    return static_cast<To*>(epilogue_.dst.data) + row * epilogue_.dst_stride + column;
  }

  const Epilogue& epilogue_;
  const int32_t* shifts_;
  bool has_integers_;
  Finish<kRegisters> finish_;
};

// Whole panels, with scales and bias of the panel in registers.
template <bool has_integers, class To, Shape shape>
class PanelEnding {
 public:
  TENON_INLINE PanelEnding(const Epilogue& epilogue, const int32_t* shifts, int64_t column)
      : low_(epilogue.low),
        high_(epilogue.high),
        is_bounded_(low_ != -kInfinity || high_ != kInfinity) {
#pragma GCC unroll 2
    for (int v = 0; v < kRegisters; ++v) {
      const int64_t at = column + v * kLanes;
      scales_[v] = load(epilogue.scales + at);
      bias_[v] = load(epilogue.bias + at);
      shifts_[v] = shifts == nullptr ? Vi{} : load_sums(shifts + at);
    }
    if constexpr (shape == Shape::kGelu) factor_ = splat(epilogue.ops[0].alpha);
    if constexpr (shape == Shape::kResidual) set_residual(epilogue.ops[0], column);
    if constexpr (kIsByte<To>) set_words(epilogue.dst);
  }

  // Two rows, the first of which is `row` of the result.
  TENON_INLINE void store(const int32_t* sums, int64_t row, To* to, int64_t stride) const {
    Vf y[2 * kRegisters];
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kRegisters; ++i) {
      const Vi loaded = load_sums(sums + i * kLanes);
      const Vf sum = has_integers ? to_float(loaded + shifts_[i % kRegisters]) : from_bits(loaded);
      y[i] = fma(sum, scales_[i % kRegisters], bias_[i % kRegisters]);
      if constexpr (shape == Shape::kGelu) y[i] = short_gelu(y[i]) * factor_;
    }
    if constexpr (shape == Shape::kResidual) add_residual(y, row);
    if constexpr (kIsByte<To>) return store_bytes(y, to, stride);
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kRegisters; ++i) {
      if (is_bounded_) y[i] = clamp(y[i], low_, high_);
      if constexpr (!kIsByte<To>)
        store_lanes(to + i / kRegisters * stride + i % kRegisters * kLanes, y[i]);
    }
  }

 private:
  static constexpr float kInfinity = __builtin_inff();

  // alpha * scale * (code - zero) as one fused operation; the zero point goes to the bias.
  void set_residual(const EpilogueOp& op, int64_t column) {
    const bool is_code = op.other.quant.scale != 0.0F;
    const float factor = is_code ? op.alpha * op.other.quant.scale : op.alpha;
    factor_ = splat(factor);
    if (is_code) {
      const float shift = static_cast<float>(op.other.quant.zero_point) * factor;
      for (Vf& bias : bias_)
        bias -= shift;
    }
    residual_ = static_cast<const char*>(op.other.data) + column * element_bytes(op.other.type);
    residual_type_ = op.other.type;
    residual_stride_ = op.row_stride;
  }
  template <class From>
  TENON_INLINE void add_from(Vf* y, int64_t row) const {
    const From* const from = reinterpret_cast<const From*>(residual_) + row * residual_stride_;
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kRegisters; ++i)
      y[i] = fma(load_lanes(from + i / kRegisters * residual_stride_ + i % kRegisters * kLanes),
                 factor_, y[i]);
  }
  TENON_INLINE void add_residual(Vf* y, int64_t row) const {
    switch (residual_type_) {
      case ElementType::kU8:
        return add_from<uint8_t>(y, row);
      case ElementType::kS8:
        return add_from<int8_t>(y, row);
      case ElementType::kBf16:
        return add_from<Bf16>(y, row);
      default:
        return add_from<float>(y, row);
    }
  }
  template <class T>
  static constexpr bool kIsByte = sizeof(T) == 1;

  // Rounding is monotonic, so bounds and the zero point are those of 16-bit integers behind it.
  void set_words(const Target& dst) {
    const bool is_signed = dst.type == ElementType::kS8;
    const float zero = static_cast<float>(dst.quant.zero_point);
    const float least = is_signed ? -128.0F : 0.0F;
    auto word = [&](float bound) {
      const float shifted = __builtin_rintf(bound) + zero;
      const float inside =
          shifted < least ? least : (shifted > least + 255 ? least + 255 : shifted);
      return _mm512_set1_epi16(static_cast<int16_t>(inside));
    };
    least_ = word(low_);
    most_ = word(high_);
    zero_ = _mm512_set1_epi16(static_cast<int16_t>(dst.quant.zero_point));
    is_bounded_ = is_bounded_ || dst.quant.zero_point != 0;
  }

  TENON_INLINE static __m512i rounded(Vf y) {
    // What is too large for an integer would become the smallest one.
    return reinterpret_cast<__m512i>(round_to_int(min_fast(y, splat(1e9F))));
  }

  TENON_INLINE void store_bytes(const Vf* y, To* to, int64_t stride) const {
    __m512i upper = _mm512_packs_epi32(rounded(y[0]), rounded(y[1]));
    __m512i lower = _mm512_packs_epi32(rounded(y[2]), rounded(y[3]));
    if (is_bounded_) {
      upper = bounded(upper);
      lower = bounded(lower);
    }
    const __m512i bytes = static_cast<To>(-1) < To{} ? _mm512_packs_epi16(upper, lower)
                                                     : _mm512_packus_epi16(upper, lower);
    // Packing went by quarters of registers.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i rows = _mm512_permutexvar_epi32(order, bytes);
    const __m256i first = _mm512_castsi512_si256(rows);
    const __m256i second = _mm512_extracti64x4_epi64(rows, 1);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + stride, &second, sizeof second);
  }
  TENON_INLINE __m512i bounded(__m512i words) const {
    return _mm512_min_epi16(_mm512_max_epi16(_mm512_adds_epi16(words, zero_), least_), most_);
  }

  float low_, high_;
  bool is_bounded_;
  Vf scales_[kRegisters], bias_[kRegisters];
  Vi shifts_[kRegisters];
  Vf factor_ = {};
  const char* residual_ = nullptr;
  ElementType residual_type_ = ElementType::kF32;
  int64_t residual_stride_ = 0;  // elements
  __m512i least_ = {}, most_ = {}, zero_ = {};
};

}  // namespace tenon::onednn::kernels::amx
