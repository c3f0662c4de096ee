// SPDX-License-Identifier: Apache-2.0
// Some rows times one panel of 4-bit weights; contract in ../int4_product.h. A register holds four
// k of each of its columns: 64 bytes of packed quantized values are 8 k of 16 columns.

#include "epilogue.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kColumns = static_cast<int>(kInt4Panel);
constexpr int kRegisters = kColumns / kLanes;  // of a row's sums
constexpr int kMostRows = static_cast<int>(kInt4Rows);
// Quantized values are asked for so many bytes ahead. The processor's own prefetch alone left a
// fifth to half of the memory's bandwidth unused with 1 to 8 rows (bench_onednn_int4: of 512 to
// 8192 bytes the most were the best, on Zen 5).
constexpr uintptr_t kAhead = 8192;
// Sums of pairs, 2 * 15 * 127 at most, that 16 bits hold.
constexpr int64_t kPairSteps = 4;

Vf scale_at(const Int4Panels& right, int64_t at) {
  switch (right.scale_type) {
    case ElementType::kF16:
      return load_lanes(static_cast<const F16*>(right.scales) + at);
    case ElementType::kBf16:
      return load_lanes(static_cast<const Bf16*>(right.scales) + at);
    default:
      return load(static_cast<const float*>(right.scales) + at);
  }
}

// Behind the last quantized values this names memory of nobody, which no prefetch reads.
TENON_INLINE void ask_ahead(const uint8_t* quantized) {
  const auto place = reinterpret_cast<uintptr_t>(quantized) + kAhead;
  __builtin_prefetch(reinterpret_cast<const char*>(place));
}

// ---- 8-bit quantized values ----

// One register of packed quantized values, and its halves as bytes: k 0 to 3, k 4 to 7.
#if defined(__AVX512F__)
#define TENON_VNNI __attribute__((target("avx512vnni"), always_inline)) inline
#define TENON_HAS_VNNI 1
TENON_VNNI Vi multiply_fours(Vi sum, Int8s quantized, Int8s left) {
  return reinterpret_cast<Vi>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum),
                                                  reinterpret_cast<__m512i>(quantized),
                                                  reinterpret_cast<__m512i>(left)));
}
#elif defined(__AVX2__)
#define TENON_VNNI __attribute__((target("avxvnni"), always_inline)) inline
#define TENON_HAS_VNNI 1
TENON_VNNI Vi multiply_fours(Vi sum, Int8s quantized, Int8s left) {
  return reinterpret_cast<Vi>(_mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(sum),
                                                      reinterpret_cast<__m256i>(quantized),
                                                      reinterpret_cast<__m256i>(left)));
}
#else
#define TENON_HAS_VNNI 0
#endif
TENON_INLINE Int8s four_int8(const int8_t* p) {
  return reinterpret_cast<Int8s>(splat_i(load_vector<int32_t>(p)));
}

// What the zero points take from the products of each row, where the sums begin.
template <int rows, bool has_zeros>
TENON_INLINE void begin_group(const Int4Block& block, int64_t g, int v, Vi* products) {
  const Vi zero = has_zeros ? widen_u8(block.right.zeros + g * kColumns + v * kLanes) : Vi{};
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    const Vi sum = splat_i(block.sums[g * rows + r]);
    products[r] = has_zeros ? zero * sum : sum;
  }
}
// sums += scale * (scale of the row) * products
template <int rows>
TENON_INLINE void end_group(
    const Int4Block& block, int64_t g, int v, const Vi* products, Vf (*sums)[kRegisters]) {
  const Vf scale = scale_at(block.right, g * kColumns + v * kLanes);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
    sums[r][v] = fma(to_float(products[r]), scale * block.scales[g * rows + r], sums[r][v]);
}

template <int rows, bool has_zeros>
void multiply_bytes(const Int4Block& block, Vf (*to)[kRegisters]) {
  Vf sums[rows][kRegisters] = {};
  const int64_t steps = block.right.group / kInt4Step;
  const uint8_t* quantized = block.right.quantized;
  const int8_t* left = block.quantized;
  for (int64_t g = 0; g < block.right.n_groups; ++g) {
#pragma GCC unroll 4
    for (int v = 0; v < kRegisters; ++v) {
      Vi products[rows];
      begin_group<rows, has_zeros>(block, g, v, products);
      for (int64_t first = 0; first < steps; first += kPairSteps) {
        const int64_t last = first + kPairSteps < steps ? first + kPairSteps : steps;
        Int16s words[rows] = {};
        for (int64_t s = first; s < last; ++s) {
          const auto x = load_vector<Int8s>(quantized + s * kInt4StepBytes + v * kVectorBytes);
          const Int8s low = low_int4(x), high = high_int4(x);
          const int8_t* const a = left + s * kInt4Step * rows;
          if (v == 0) ask_ahead(quantized + s * kInt4StepBytes);
#pragma GCC unroll 8
          for (int r = 0; r < rows; ++r)
            words[r] += multiply_pairs(low, four_int8(a + r * 4));
#pragma GCC unroll 8
          for (int r = 0; r < rows; ++r)
            words[r] += multiply_pairs(high, four_int8(a + (rows + r) * 4));
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
          products[r] += join_words(words[r]);
      }
      end_group<rows>(block, g, v, products, sums);
    }
    quantized += steps * kInt4StepBytes;
    left += steps * kInt4Step * rows;
  }
  std::memcpy(to, sums, sizeof sums);
}

#if TENON_HAS_VNNI
// Few rows have two chains of sums each, so that none waits for the instruction's result.
template <int rows, bool has_zeros>
TENON_VNNI void multiply_vnni(const Int4Block& block, Vf (*to)[kRegisters]) {
  Vf sums[rows][kRegisters] = {};
  constexpr int kChains = rows <= 4 ? 2 : 1;
  const int64_t steps = block.right.group / kInt4Step;
  const uint8_t* quantized = block.right.quantized;
  const int8_t* left = block.quantized;
  for (int64_t g = 0; g < block.right.n_groups; ++g) {
#pragma GCC unroll 4
    for (int v = 0; v < kRegisters; ++v) {
      Vi products[kChains * rows] = {};
      begin_group<rows, has_zeros>(block, g, v, products);
#pragma GCC unroll 2
      for (int64_t s = 0; s < steps; ++s) {
        const auto x = load_vector<Int8s>(quantized + s * kInt4StepBytes + v * kVectorBytes);
        const Int8s low = low_int4(x), high = high_int4(x);
        const int8_t* const a = left + s * kInt4Step * rows;
        if (v == 0) ask_ahead(quantized + s * kInt4StepBytes);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
          products[r] = multiply_fours(products[r], low, four_int8(a + r * 4));
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          Vi& sum = products[(kChains - 1) * rows + r];
          sum = multiply_fours(sum, high, four_int8(a + (rows + r) * 4));
        }
      }
      if constexpr (kChains == 2) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
          products[r] += products[rows + r];
      }
      end_group<rows>(block, g, v, products, sums);
    }
    quantized += steps * kInt4StepBytes;
    left += steps * kInt4Step * rows;
  }
  std::memcpy(to, sums, sizeof sums);
}
#endif

// ---- reals ----

// Quantized value i (of 8) of each lane, less 8 where that is the zero point of all.
#if defined(__AVX512F__)
struct Decoder {
  Vf numbers;  // of the 16 quantized values
  explicit Decoder(bool has_zeros) {
    for (int i = 0; i < 16; ++i)
      numbers[i] = static_cast<float>(has_zeros ? i : i - kInt4Zero);
  }
  TENON_INLINE Vf operator()(Vu quantized, int i) const {
    const int shift = i < 4 ? i * 8 : i * 8 - 28;
    return _mm512_permutexvar_ps(reinterpret_cast<__m512i>(quantized >> shift), numbers);
  }
};
#else
struct Decoder {
  int32_t flip, shift_back;
  explicit Decoder(bool has_zeros) : flip(has_zeros ? 0 : static_cast<int32_t>(0x88888888U)) {
    shift_back = has_zeros;
  }
  TENON_INLINE Vf operator()(Vu quantized, int i) const {
    const int shift = i < 4 ? i * 8 : i * 8 - 28;
    if (shift_back) return to_float(reinterpret_cast<Vi>(quantized >> shift & 15U));
    const Vi top = reinterpret_cast<Vi>((quantized ^ static_cast<uint32_t>(flip)) << (28 - shift));
    return to_float(top >> 28);
  }
};
#endif

template <int rows, bool has_zeros>
void multiply_reals(const Int4Block& block, Vf (*to)[kRegisters]) {
  Vf sums[rows][kRegisters] = {};
  constexpr int kChains = rows <= 2 ? 4 : (rows <= 4 ? 2 : 1);
  const int64_t steps = block.right.group / kInt4Step;
  const uint8_t* quantized = block.right.quantized;
  const float* left = block.reals;
  const Decoder decode(has_zeros);
  for (int64_t g = 0; g < block.right.n_groups; ++g) {
#pragma GCC unroll 4
    for (int v = 0; v < kRegisters; ++v) {
      const int64_t at = g * kColumns + v * kLanes;
      const Vf scale = scale_at(block.right, at);
      const Vf zero = has_zeros ? to_float(widen_u8(block.right.zeros + at)) : Vf{};
      Vf products[kChains][rows] = {};
      for (int64_t s = 0; s < steps; ++s) {
        const auto x = load_vector<Vu>(quantized + s * kInt4StepBytes + v * kVectorBytes);
        const float* const a = left + s * kInt4Step * rows;
        if (v == 0) ask_ahead(quantized + s * kInt4StepBytes);
#pragma GCC unroll 8
        for (int i = 0; i < kInt4Step; ++i) {
          Vf w = decode(x, i);
          if constexpr (has_zeros) w -= zero;
#pragma GCC unroll 8
          for (int r = 0; r < rows; ++r) {
            Vf& sum = products[i % kChains][r];
            sum = fma(w, splat(a[i * rows + r]), sum);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        Vf sum = products[0][r];
#pragma GCC unroll 4
        for (int i = 1; i < kChains; ++i)
          sum += products[i][r];
        sums[r][v] = fma(sum, scale, sums[r][v]);
      }
    }
    quantized += steps * kInt4StepBytes;
    left += steps * kInt4Step * rows;
  }
  std::memcpy(to, sums, sizeof sums);
}

// ---- both ----

template <class To>
void store_rows(const Epilogue& epilogue, int rows, const Vf (*y)[kRegisters]) {
  const RowEpilogue<kRegisters> row_epilogue(epilogue);
  for (int r = 0; r < rows; ++r)
    row_epilogue.store(static_cast<To*>(epilogue.dst.data) + r * epilogue.dst_stride, y[r], 0);
}

void apply_epilogue(const Epilogue& epilogue, int rows, Vf (*y)[kRegisters]) {
  const RowEpilogue<kRegisters> row_epilogue(epilogue);
  for (int r = 0; r < rows; ++r)
    row_epilogue.scale(y[r], 0, y[r]);
  for (int i = 0; i < epilogue.n_ops; ++i)
    apply<kRegisters>(epilogue, epilogue.ops[i], {0, 0, rows}, y[0]);
  of_float_type(epilogue.dst.type, [&]<class To>() { store_rows<To>(epilogue, rows, y); });
}

#if TENON_HAS_VNNI
#if defined(__AVX512F__)
#define TENON_VNNI_FUNCTION __attribute__((target("avx512vnni"), noinline))
#else
#define TENON_VNNI_FUNCTION __attribute__((target("avxvnni"), noinline))
#endif
template <int rows, bool has_zeros>
TENON_VNNI_FUNCTION void vnni_rows(const Int4Block& block, Vf (*sums)[kRegisters]) {
  multiply_vnni<rows, has_zeros>(block, sums);
}
#endif

template <int rows, bool has_zeros>
void multiply_rows(const Int4Block& block, Vf (*sums)[kRegisters]) {
  switch (block.form) {
    case Int4Form::kReal:
      return multiply_reals<rows, has_zeros>(block, sums);
#if TENON_HAS_VNNI
    case Int4Form::kVnni:
      return vnni_rows<rows, has_zeros>(block, sums);
#endif
    default:
      return multiply_bytes<rows, has_zeros>(block, sums);
  }
}

template <int rows>
void multiply_block(const Int4Block& block) {
  if constexpr (rows > 1) {
    if (block.n_rows < rows) return multiply_block<rows - 1>(block);
  }
  Vf sums[rows][kRegisters];
  if (block.right.zeros == nullptr)
    multiply_rows<rows, false>(block, sums);
  else
    multiply_rows<rows, true>(block, sums);
  apply_epilogue(block.epilogue, rows, sums);
}

}  // namespace

void int4_block(const Int4Block& block) {
  multiply_block<kMostRows>(block);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
