// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit codes, widened to 16 bits; contract in ../code_product.h. A tile is some rows
// times one panel: its sums stay in registers over all of k.

#include "elements.h"
#include "level.h"
#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kColumns = static_cast<int>(kCodePanel);
constexpr int kRegisters = kColumns / kLanes;  // of a row's sums

// 16-bit numbers of one register: `kLanes` columns of two.
#if defined(__AVX512F__)
constexpr int kRows = 12;
inline __m512i widen_signed(const void* p) {
  return _mm512_cvtepi8_epi16(load_vector<__m256i>(p));
}
inline __m512i widen_unsigned(const void* p) {
  return _mm512_cvtepu8_epi16(load_vector<__m256i>(p));
}
inline Vi multiply_pairs(Vi a, __m512i b) {
  return reinterpret_cast<Vi>(_mm512_madd_epi16(reinterpret_cast<__m512i>(a), b));
}
#elif defined(__AVX2__)
constexpr int kRows = 6;
inline __m256i widen_signed(const void* p) {
  return _mm256_cvtepi8_epi16(load_vector<__m128i>(p));
}
inline __m256i widen_unsigned(const void* p) {
  return _mm256_cvtepu8_epi16(load_vector<__m128i>(p));
}
inline Vi multiply_pairs(Vi a, __m256i b) {
  return reinterpret_cast<Vi>(_mm256_madd_epi16(reinterpret_cast<__m256i>(a), b));
}
#else
constexpr int kRows = 2;
inline __m128i widen_signed(const void* p) {
  return _mm_cvtepi8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
inline __m128i widen_unsigned(const void* p) {
  return _mm_cvtepu8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
inline Vi multiply_pairs(Vi a, __m128i b) {
  return reinterpret_cast<Vi>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), b));
}
#endif
constexpr int kWords = kVectorBytes / 2;
using Words = VectorOf<int16_t, kWords>::Type;

// The low bytes of one panel's lanes.
inline void narrow_panel(void* to, const Vi* v) {
#if defined(__AVX512F__)
  narrow_8(to, v[0]);
#elif defined(__AVX2__)
  const __m256i words = _mm256_packus_epi32(reinterpret_cast<__m256i>(v[0] & 0xff),
                                            reinterpret_cast<__m256i>(v[1] & 0xff));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
  const __m128i bytes =
      _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
  std::memcpy(to, &bytes, sizeof bytes);
#else
  const __m128i low = _mm_packus_epi32(reinterpret_cast<__m128i>(v[0] & 0xff),
                                       reinterpret_cast<__m128i>(v[1] & 0xff));
  const __m128i high = _mm_packus_epi32(reinterpret_cast<__m128i>(v[2] & 0xff),
                                        reinterpret_cast<__m128i>(v[3] & 0xff));
  const __m128i bytes = _mm_packus_epi16(low, high);
  std::memcpy(to, &bytes, sizeof bytes);
#endif
}

Vf half_of_gelu(Vf y, Vf t) {
  return y * (t * 0.5F + 0.5F);
}

// The other operand's numbers for n columns; what lies behind them is not read.
Vf other_of(const CodeTailOp& op, int64_t row, int64_t column, int64_t n) {
  const int64_t at = row * op.row_stride + column * op.column_stride;
  auto take = [&](const auto* data) {
    if (op.column_stride == 0) return load_lanes_part(data + at, 1)[0] + Vf{};
    return n >= kLanes ? load_lanes(data + at) : load_lanes_part(data + at, n);
  };
  const Quant& quant = op.other.quant;
  auto real = [&](Vf codes) {
    return (codes - static_cast<float>(quant.zero_point)) * quant.scale;
  };
  switch (op.other.type) {
    case ElementType::kU8:
      return real(take(static_cast<const uint8_t*>(op.other.data)));
    case ElementType::kS8:
      return real(take(static_cast<const int8_t*>(op.other.data)));
    default:
      return take(static_cast<const float*>(op.other.data));
  }
}

// y: [n]
template <class F>
inline void each(Vf* y, int n, const F& f) {
  for (int i = 0; i < n; ++i)
    y[i] = f(y[i]);
}

struct TileOf {  // rows of one panel
  int64_t row;
  int64_t column;
  int rows;
};

template <class F>
inline void each_with_other(
    const CodeBlock& block, const CodeTailOp& op, const TileOf& tile, Vf* y, const F& f) {
  const int64_t n = block.columns - tile.column;
  for (int r = 0; r < tile.rows; ++r) {
    for (int v = 0; v < kRegisters && v * kLanes < n; ++v) {
      Vf& at = y[r * kRegisters + v];
      at = f(at, other_of(op, block.first_row + tile.row + r,
                          block.first_column + tile.column + v * kLanes, n - v * kLanes));
    }
  }
}

void apply(const CodeBlock& block, const CodeTailOp& op, const TileOf& tile, Vf* y) {
  using Kind = CodeTailOp::Kind;
  const int n = tile.rows * kRegisters;
  const Vf alpha = splat(op.alpha), beta = splat(op.beta);
  switch (op.kind) {
    case Kind::kClip:
      return each(y, n, [&](Vf x) { return clamp(x, op.alpha, op.beta); });
    case Kind::kLeakyRelu:
      return each(y, n, [&](Vf x) { return x > 0.0F ? x : x * alpha; });
    case Kind::kLinear:
      return each(y, n, [&](Vf x) { return x * alpha + beta; });
    case Kind::kHardSigmoid:
      return each(y, n, [&](Vf x) { return clamp(x * alpha + beta, 0, 1); });
    case Kind::kHardSwish:
      return each(y, n, [&](Vf x) { return x * clamp(x * alpha + beta, 0, 1); });
    case Kind::kSwish:
      return each(y, n, [&](Vf x) { return x * sigmoid(x * alpha); });
    case Kind::kSigmoid:
      return each(y, n, [](Vf x) { return sigmoid(x); });
    case Kind::kTanh:
      return each(y, n, [](Vf x) { return tanh(x); });
    case Kind::kGeluErf:
      return each(y, n, [](Vf x) { return half_of_gelu(x, erf(x * 0.70710678118654752F)); });
    case Kind::kGeluTanh:
      return each(y, n, [](Vf x) {
        return half_of_gelu(x, tanh(x * 0.79788456080286536F * (x * x * 0.044715F + 1.0F)));
      });
    case Kind::kAdd:
      return each_with_other(block, op, tile, y, [](Vf x, Vf other) { return x + other; });
    case Kind::kMul:
      return each_with_other(block, op, tile, y, [](Vf x, Vf other) { return x * other; });
  }
}

// One operation after the other on a whole tile; one function, so that tiles stay small.
[[gnu::noinline]] void apply_all(const CodeBlock& block, const TileOf& tile, Vf* y) {
  for (int i = 0; i < block.n_ops; ++i)
    apply(block, block.ops[i], tile, y);
}

template <class To>
constexpr bool kStoresSums = false;
template <>
constexpr bool kStoresSums<int32_t> = true;

// What the result's type stores of one row in a panel: integer sums, or y.
struct Finish {
  const CodeBlock& block;
  float low, high;  // codes: where rounding and the zero point stay within the type

  explicit Finish(const CodeBlock& of) : block(of), low(of.low), high(of.high) {
    const bool is_signed = of.dst.type == ElementType::kS8;
    if (!is_signed && of.dst.type != ElementType::kU8) return;
    const auto zero = static_cast<float>(of.dst.quant.zero_point);
    const float least = (is_signed ? -128.0F : 0.0F) - zero;
    low = low < least ? least : (low > least + 255.0F ? least + 255.0F : low);
    high = high > least + 255.0F ? least + 255.0F : (high < least ? least : high);
  }
  // Of sums that start at `column`.
  void scale(const Vi* sums, int64_t column, Vf* y) const {
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      y[v] = fma(to_float(sums[v]), load(block.scales + column + v * kLanes),
                 load(block.bias + column + v * kLanes));
  }
  void store(float* to, const Vf* y) const {
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      store_lanes(to + v * kLanes, clamp(y[v], low, high));
  }
  template <class Code>
  void store(Code* to, const Vf* y) const {
    Vi codes[kRegisters];
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      codes[v] = round_to_int(clamp(y[v], low, high)) + block.dst.quant.zero_point;
    narrow_panel(to, codes);
  }
  void store(int32_t* to, const Vi* sums) const { std::memcpy(to, sums, sizeof(Vi) * kRegisters); }
  // The columns that are there.
  template <class To, class V>
  void operator()(To* to, const V* row, int64_t column) const {
    const int64_t n = block.columns - column;
    if (n >= kColumns) return store(to, row);
    To panel[kColumns];
    store(panel, row);
    std::memcpy(to, panel, static_cast<uint64_t>(n) * sizeof(To));
  }
};

// GCC keeps the sums in registers only where all loops over them are unrolled.
template <int rows, class To>
void multiply_tile(const CodeBlock& block, int64_t row, int64_t column) {
  Vi sums[rows][kRegisters];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      sums[r][v] = Vi{};
  const int64_t width = 2 * block.pairs;
  const int16_t* const a = block.rows + row * width;
  const int8_t* b = block.panels + column * width;
#pragma GCC unroll 2
  for (int64_t k = 0; k < block.pairs; ++k, b += 2 * kColumns) {
    decltype(widen_signed(b)) right[kRegisters];
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      right[v] = widen_signed(b + v * kWords);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const Vi left = splat_i(load_vector<int32_t>(a + r * width + 2 * k));
#pragma GCC unroll 16
      for (int v = 0; v < kRegisters; ++v)
        sums[r][v] += multiply_pairs(left, right[v]);
    }
  }
  const Finish finish(block);
  To* const to = static_cast<To*>(block.dst.data) + row * block.dst_stride + column;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      sums[r][v] += block.row_shifts[row + r];
  if constexpr (kStoresSums<To>) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      finish(to + r * block.dst_stride, sums[r], column);
  } else {
    Vf y[rows][kRegisters];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      finish.scale(sums[r], column, y[r]);
    if (block.n_ops > 0) apply_all(block, {row, column, rows}, y[0]);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      finish(to + r * block.dst_stride, y[r], column);
  }
}

template <int rows, class To>
void multiply_rest(const CodeBlock& block, int64_t row, int64_t column) {
  if constexpr (rows > 0) {
    if (block.n_rows - row == rows) return multiply_tile<rows, To>(block, row, column);
    multiply_rest<rows - 1, To>(block, row, column);
  }
}

template <class To>
void multiply(const CodeBlock& block) {
  for (int64_t column = 0; column < block.columns; column += kColumns) {
    int64_t row = 0;
    for (; row + kRows <= block.n_rows; row += kRows)
      multiply_tile<kRows, To>(block, row, column);
    multiply_rest<kRows - 1, To>(block, row, column);
  }
}

}  // namespace

void code_block(const CodeBlock& block) {
  switch (block.dst.type) {
    case ElementType::kF32:
      return multiply<float>(block);
    case ElementType::kU8:
      return multiply<uint8_t>(block);
    case ElementType::kS8:
      return multiply<int8_t>(block);
    default:
      return multiply<int32_t>(block);
  }
}

void widen_codes(const uint8_t* codes, bool is_signed, int32_t zero, int64_t n, int16_t* dst) {
  Words zeros = Words{} + static_cast<int16_t>(zero);
  int64_t i = 0;
  for (; i + kWords <= n; i += kWords) {
    const Words wide = is_signed ? reinterpret_cast<Words>(widen_signed(codes + i))
                                 : reinterpret_cast<Words>(widen_unsigned(codes + i));
    const Words centred = wide - zeros;
    std::memcpy(dst + i, &centred, sizeof centred);
  }
  for (; i < n; ++i) {
    const int32_t code = is_signed ? static_cast<int8_t>(codes[i]) : codes[i];
    dst[i] = static_cast<int16_t>(code - zero);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
