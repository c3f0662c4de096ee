// SPDX-License-Identifier: Apache-2.0
#pragma once
// What becomes of sums before they are stored; contract in ../epilogue_args.h. It goes by panels of
// `registers` registers: y holds some rows of one panel, one row behind the other.

#include "../epilogue_args.h"
#include "elements.h"
#include "erf_gelu.h"
#include "gelu_table.h"
#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

// Functions that the kernels call in their innermost loops, with constant numbers of rows.
#define TENON_INLINE [[gnu::always_inline]] inline

// Bounds of floating-point numbers; NaN stays NaN.
static inline Vf bounded(Vf y, float low, float high) {
  const Vf least = splat(low), most = splat(high);
  y = least > y ? least : y;
  return most < y ? most : y;
}

// y Phi(y), Phi(y) - 1/2 being an odd minimax polynomial on [-4.2, 4.2] that is 1/2 at its end:
// within 1e-4 of GELU everywhere.
static inline Vf short_gelu(Vf y) {
  const Vf x = clamp(y, -4.2F, 4.2F);
  const Vf square = x * x;
  Vf p = splat(-9.0174723e-10F);
  p = fma(p, square, splat(7.9412960e-08F));
  p = fma(p, square, splat(-3.0379192e-06F));
  p = fma(p, square, splat(6.6890510e-05F));
  p = fma(p, square, splat(-9.5065600e-04F));
  p = fma(p, square, splat(9.2982230e-03F));
  p = fma(p, square, splat(-6.5528190e-02F));
  p = fma(p, square, splat(3.9846587e-01F));
  return y * fma(p, x, splat(0.5F));
}

// f.operator()<T>() with the type that results of floating-point products have: f32, or what it is
// stored as.
template <class F>
TENON_INLINE decltype(auto) of_float_type(ElementType type, const F& f) {
  switch (type) {
    case ElementType::kU8:
      return f.template operator()<uint8_t>();
    case ElementType::kS8:
      return f.template operator()<int8_t>();
    case ElementType::kBf16:
      return f.template operator()<Bf16>();
    default:
      return f.template operator()<float>();
  }
}
// The same of products of integers: sums, or what they are brought to.
template <class F>
TENON_INLINE decltype(auto) of_sum_type(ElementType type, const F& f) {
  switch (type) {
    case ElementType::kF32:
      return f.template operator()<float>();
    case ElementType::kU8:
      return f.template operator()<uint8_t>();
    case ElementType::kS8:
      return f.template operator()<int8_t>();
    default:
      return f.template operator()<int32_t>();
  }
}

// The other operand's numbers for n columns; what lies behind them is not read.
static inline Vf other_of(const EpilogueOp& op, int64_t row, int64_t column, int64_t n) {
  const int64_t at = row * op.row_stride + column * op.column_stride;
  auto take = [&](const auto* data) {
    if (op.column_stride == 0) return load_lanes_part(data + at, 1)[0] + Vf{};
    return n >= kLanes ? load_lanes(data + at) : load_lanes_part(data + at, n);
  };
  const Quant& quant = op.other.quant;
  auto real = [&](Vf quantized) {
    return (quantized - static_cast<float>(quant.zero_point)) * quant.scale;
  };
  return of_float_type(op.other.type, [&]<class T>() {
    const Vf number = take(static_cast<const T*>(op.other.data));
    return sizeof(T) == 1 ? real(number) : number;
  });
}

// y: [n]
template <class F>
TENON_INLINE void each(Vf* y, int n, const F& f) {
  for (int i = 0; i < n; ++i)
    y[i] = f(y[i]);
}

struct TileOf {  // rows of one panel, within the block
  int64_t row;
  int64_t column;
  int rows;
};

template <int registers, class F>
TENON_INLINE void each_with_other(
    const Epilogue& epilogue, const EpilogueOp& op, const TileOf& tile, Vf* y, const F& f) {
  const int64_t n = epilogue.columns - tile.column;
  for (int r = 0; r < tile.rows; ++r) {
    for (int v = 0; v < registers && v * kLanes < n; ++v) {
      Vf& at = y[r * registers + v];
      at = f(at, other_of(op, epilogue.first_row + tile.row + r,
                          epilogue.first_column + tile.column + v * kLanes, n - v * kLanes));
    }
  }
}

template <int registers>
TENON_INLINE void apply(const Epilogue& epilogue, const EpilogueOp& op, const TileOf& tile, Vf* y) {
  using Kind = EpilogueOp::Kind;
  const int n = tile.rows * registers;
  const Vf alpha = splat(op.alpha), beta = splat(op.beta);
  switch (op.kind) {
    case Kind::kClip:
      return each(y, n, [&](Vf x) { return bounded(x, op.alpha, op.beta); });
    case Kind::kLeakyRelu:
      return each(y, n, [&](Vf x) { return x > 0.0F ? x : x * alpha; });
    case Kind::kLinear:
      return each(y, n, [&](Vf x) { return x * alpha + beta; });
    case Kind::kHardSigmoid:
      return each(y, n, [&](Vf x) { return bounded(x * alpha + beta, 0, 1); });
    case Kind::kHardSwish:
      return each(y, n, [&](Vf x) { return x * bounded(x * alpha + beta, 0, 1); });
    case Kind::kSwish:
      return each(y, n, [&](Vf x) { return swish(x, alpha); });
    case Kind::kSigmoid:
      return each(y, n, [](Vf x) { return sigmoid(x); });
    case Kind::kTanh:
      return each(y, n, [](Vf x) { return tanh(x); });
    case Kind::kGeluErf:
      return each(y, n, [](Vf x) { return erf_gelu(x); });
    case Kind::kGeluTanh:
      return each(y, n, [](Vf x) {
        const Vf t = tanh(x * 0.79788456080286536F * (x * x * 0.044715F + 1.0F));
        return x * (t * 0.5F + 0.5F);
      });
    case Kind::kAdd:
      return each_with_other<registers>(epilogue, op, tile, y,
                                        [&](Vf x, Vf other) { return x + other * alpha; });
    case Kind::kMul:
      return each_with_other<registers>(epilogue, op, tile, y,
                                        [](Vf x, Vf other) { return x * other; });
    case Kind::kShortGelu:
      return each(y, n, [&](Vf x) { return short_gelu(x) * alpha; });
    case Kind::kTableGelu:
      if (op.other.data == nullptr) return each(y, n, [&](Vf x) { return table_gelu(x) * alpha; });
      return each_with_other<registers>(
          epilogue, op, tile, y, [&](Vf x, Vf other) { return table_gelu(x) * (other * alpha); });
  }
}

// One operation after the other on a whole tile; one function, so that tiles stay small.
template <int registers>
[[gnu::noinline]] void apply_all(const Epilogue& epilogue, const TileOf& tile, Vf* y) {
  for (int i = 0; i < epilogue.n_ops; ++i)
    apply<registers>(epilogue, epilogue.ops[i], tile, y);
}

// The first and the last of an epilogue, for one row of a panel: scales and bias, and bounds,
// rounding and storing in the result's type.
template <int registers>
struct RowEpilogue {
  static constexpr int kColumns = registers * kLanes;
  const Epilogue& epilogue;
  float low, high;  // quantized values: where rounding and the zero point stay within the type

  explicit RowEpilogue(const Epilogue& of) : epilogue(of), low(of.low), high(of.high) {
    const bool is_signed = of.dst.type == ElementType::kS8;
    if (!is_signed && of.dst.type != ElementType::kU8) return;
    const auto zero = static_cast<float>(of.dst.quant.zero_point);
    const float least = (is_signed ? -128.0F : 0.0F) - zero;
    low = low < least ? least : (low > least + 255.0F ? least + 255.0F : low);
    high = high > least + 255.0F ? least + 255.0F : (high < least ? least : high);
  }
  // Of sums that start at `column`.
  TENON_INLINE void scale(const Vf* sums, int64_t column, Vf* y) const {
#pragma GCC unroll 16
    for (int v = 0; v < registers; ++v)
      y[v] = fma(sums[v], load(epilogue.scales + column + v * kLanes),
                 load(epilogue.bias + column + v * kLanes));
  }
  template <class Real>
  TENON_INLINE void store_panel(Real* to, const Vf* y) const {
#pragma GCC unroll 16
    for (int v = 0; v < registers; ++v)
      store_lanes(to + v * kLanes, bounded(y[v], low, high));
  }
  TENON_INLINE void store_panel(uint8_t* to, const Vf* y) const { store_quantized(to, y); }
  TENON_INLINE void store_panel(int8_t* to, const Vf* y) const { store_quantized(to, y); }
  TENON_INLINE void store_quantized(void* to, const Vf* y) const {
    Vi quantized[registers];
#pragma GCC unroll 16
    for (int v = 0; v < registers; ++v)
      quantized[v] = round_to_int(clamp(y[v], low, high)) + epilogue.dst.quant.zero_point;
    narrow_panel<registers>(to, quantized);
  }
  TENON_INLINE void store_panel(int32_t* to, const Vi* sums) const {
    std::memcpy(to, sums, sizeof(Vi) * registers);
  }
  // The columns that are there. row: y, or integer sums where the result is i32.
  template <class To, class V>
  TENON_INLINE void store(To* to, const V* row, int64_t column) const {
    const int64_t n = epilogue.columns - column;
    if (n >= kColumns) return store_panel(to, row);
    To panel[kColumns];
    store_panel(panel, row);
    std::memcpy(to, panel, static_cast<uint64_t>(n) * sizeof(To));
  }
};

// Numbers of a tile, [tile.rows][registers], as the result's type, which is floating point or 8
// bits.
template <int registers, class To>
void store_tile(const Epilogue& epilogue, const TileOf& tile, const Vf* y) {
  const RowEpilogue<registers> row_epilogue(epilogue);
  To* const to = static_cast<To*>(epilogue.dst.data) + tile.row * epilogue.dst_stride + tile.column;
  for (int r = 0; r < tile.rows; ++r)
    row_epilogue.store(to + r * epilogue.dst_stride, y + r * registers, tile.column);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
