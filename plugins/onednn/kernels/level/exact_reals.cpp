// SPDX-License-Identifier: Apache-2.0
// Instructions of f64, one vectorised loop each; contract in ../exact_args.h. Functions come from
// glibc's libmvec, within 4 units in the last place; where a level or the library has none of
// vectors, from the C library.

#include "tenon/expr.h"

#include "../exact_args.h"
#include "comparisons.h"
#include "level.h"
#include "truncate.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

#if defined(TENON_HAS_MVEC) && defined(__AVX512F__)
#define TENON_VECTOR_NAME(arguments, name) _ZGVeN8##arguments##_##name
constexpr int64_t kDoubles = 8;
#elif defined(TENON_HAS_MVEC) && defined(__AVX2__)
#define TENON_VECTOR_NAME(arguments, name) _ZGVdN4##arguments##_##name
constexpr int64_t kDoubles = 4;
#endif

#ifdef TENON_VECTOR_NAME
using Vd = double __attribute__((vector_size(8 * kDoubles)));

Vd load(const double* from) {
  Vd x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
void store(double* to, Vd x) {
  __builtin_memcpy(to, &x, sizeof x);
}
// The numbers of a short vector, the last of them again in the lanes behind.
Vd load_part(const double* from, int64_t n) {
  Vd x;
  for (int64_t i = 0; i < kDoubles; ++i)
    x[i] = from[i < n ? i : n - 1];
  return x;
}
void store_part(double* to, Vd x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = x[i];
}

template <class F>
void over_vectors(const double* a, const double* b, int64_t n, double* out, const F& f) {
  int64_t i = 0;
  for (; i + kDoubles <= n; i += kDoubles)
    store(out + i, f(load(a + i), load(b + i)));
  if (i < n) store_part(out + i, f(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
}
#endif

double floor_mod(double a, double b) {
  const double r = __builtin_fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <class F>
void over_tile(
    const double* a, const double* b, const double* c, int64_t n, double* out, const F& f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    out[i] = f(a[i], b[i], c[i]);
}

}  // namespace

#ifdef TENON_VECTOR_NAME
#define TENON_EXACT_FUNCTION(opcode, name) extern "C" Vd TENON_VECTOR_NAME(v, name)(Vd);
#define TENON_EXACT_FUNCTION_OF_TWO(opcode, name) extern "C" Vd TENON_VECTOR_NAME(vv, name)(Vd, Vd);
#define TENON_EXACT(name, real, integer)
#define TENON_EXACT_REAL(name, formula)
#define TENON_EXACT_INTEGER(name, formula)
#include "../exact_ops.def"
#undef TENON_EXACT_FUNCTION
#undef TENON_EXACT_FUNCTION_OF_TWO
#undef TENON_EXACT
#undef TENON_EXACT_REAL
#undef TENON_EXACT_INTEGER
#endif

namespace {

// In the place of an opcode's loop; of others null.
constexpr RealOp instruction(uint32_t op) {
  using N = double;
  switch (op) {
#define TENON_EXACT_REAL(name, formula)                                                        \
  case TN_EXPR_##name:                                                                         \
    return [](const N* x, const N* y, const N* z, int64_t n, N* out) {                         \
      over_tile(x, y, z, n, out,                                                               \
                [](N a, [[maybe_unused]] N b, [[maybe_unused]] N c) -> N { return formula; }); \
    };
#define TENON_EXACT(name, real, integer) TENON_EXACT_REAL(name, real)
#define TENON_EXACT_INTEGER(name, formula)
#ifdef TENON_VECTOR_NAME
#define TENON_EXACT_FUNCTION(name, function)                                                  \
  case TN_EXPR_##name:                                                                        \
    return [](const N* x, const N*, const N*, int64_t n, N* out) {                            \
      over_vectors(x, x, n, out, [](Vd a, Vd) { return TENON_VECTOR_NAME(v, function)(a); }); \
    };
#define TENON_EXACT_FUNCTION_OF_TWO(name, function)                                   \
  case TN_EXPR_##name:                                                                \
    return [](const N* x, const N* y, const N*, int64_t n, N* out) {                  \
      over_vectors(x, y, n, out,                                                      \
                   [](Vd a, Vd b) { return TENON_VECTOR_NAME(vv, function)(a, b); }); \
    };
#else
#define TENON_EXACT_FUNCTION(name, function) TENON_EXACT_REAL(name, __builtin_##function(a))
#define TENON_EXACT_FUNCTION_OF_TWO(name, function) \
  TENON_EXACT_REAL(name, __builtin_##function(a, b))
#endif
#include "../exact_ops.def"
#undef TENON_EXACT_FUNCTION
#undef TENON_EXACT_FUNCTION_OF_TWO
#undef TENON_EXACT_REAL
#undef TENON_EXACT_INTEGER
#undef TENON_EXACT
    default:
      return nullptr;
  }
}

// e = exp(-|a|) does not overflow: 1 / (1 + e) where a is positive, e / (1 + e) elsewhere.
void sigmoid(const double* a, const double*, const double*, int64_t n, double* out) {
  double e[kExactTile];
  over_tile(a, a, a, n, e, [](double x, double, double) { return -__builtin_fabs(x); });
  instruction(TN_EXPR_EXP)(e, e, e, n, e);
  over_tile(a, e, a, n, out,
            [](double x, double small, double) { return (x >= 0 ? 1 : small) / (1 + small); });
}

// A square is a product, rounded once, and a cube two of them.
void power(const double* a, const double* b, const double* c, int64_t n, double* out) {
  bool are_squares = true, are_cubes = true;
  for (int64_t i = 0; i < n; ++i) {
    are_squares &= b[i] == 2;
    are_cubes &= b[i] == 3;
  }
  if (are_cubes)
    return over_tile(a, a, a, n, out, [](double x, double, double) { return x * x * x; });
  instruction(are_squares ? TN_EXPR_MUL : TN_EXPR_POW)(a, are_squares ? a : b, c, n, out);
}

template <class T>
void load_tile(const void* src, int64_t stride, int64_t n, double* out) {
  const T* from = static_cast<const T*>(src);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<double>(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<double>(from[i * stride]);
  }
}

template <class T>
void store_tile(const double* from, int64_t n, void* dst) {
  T* to = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<T>(from[i]);
}
// A bool is a byte of 0 or 1; halved step by step, the loop runs in vectors.
void store_bools(const double* from, int64_t n, void* dst) {
  uint8_t* to = static_cast<uint8_t*>(dst);
  int32_t are[kExactTile];
  for (int64_t i = 0; i < n; ++i)
    are[i] = from[i] != 0 ? 1 : 0;
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<uint8_t>(are[i]);
}

template <ElementType kType>
void load_halves(const void* src, int64_t stride, int64_t n, double* out) {
  float row[kExactTile];
  if (stride == 1) {
    load_f32({src, kType}, 0, n, row);
  } else {
    load_strided({src, kType}, 0, stride, n, row);
  }
  load_tile<float>(row, 1, n, out);
}

// To float so that a second rounding, to f16, gives what one rounding of the double gives: what is
// not exact becomes the neighbour whose last bit is set (Boldo and Melquiond 2008, "Emulation of
// FMA and correctly rounded sums: proved algorithms using rounding to odd", section 3).
float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  const uint32_t bits = __builtin_bit_cast(uint32_t, nearest);
  const uint32_t toward_x = __builtin_fabs(back) < __builtin_fabs(x) ? bits + 1 : bits - 1;
  const bool is_kept = back == x || (bits & 1U) != 0 || x != x;
  return __builtin_bit_cast(float, is_kept ? bits : toward_x);
}
void store_f16(const double* from, int64_t n, void* dst) {
  float row[kExactTile];
  for (int64_t i = 0; i < n; ++i)
    row[i] = round_to_odd(from[i]);
  store_f32(row, n, {dst, ElementType::kF16}, 0, false);
}
// By way of float, as bfloat16 is its upper half.
void store_bf16(const double* from, int64_t n, void* dst) {
  float row[kExactTile];
  store_tile<float>(from, n, row);
  store_f32(row, n, {dst, ElementType::kBf16}, 0, false);
}

template <class T>
void add_load(RealOps& ops, ElementType type) {
  ops.load[static_cast<int>(type)] = load_tile<T>;
}
void add_conversions(RealOps& ops) {
  add_load<float>(ops, ElementType::kF32);
  add_load<double>(ops, ElementType::kF64);
  add_load<uint8_t>(ops, ElementType::kU8);
  add_load<uint8_t>(ops, ElementType::kBool);
  add_load<int8_t>(ops, ElementType::kS8);
  add_load<uint16_t>(ops, ElementType::kU16);
  add_load<int16_t>(ops, ElementType::kS16);
  add_load<uint32_t>(ops, ElementType::kU32);
  add_load<int32_t>(ops, ElementType::kI32);
  add_load<uint64_t>(ops, ElementType::kU64);
  add_load<int64_t>(ops, ElementType::kI64);
  ops.store[static_cast<int>(ElementType::kF32)] = store_tile<float>;
  ops.store[static_cast<int>(ElementType::kF64)] = store_tile<double>;
  ops.store[static_cast<int>(ElementType::kBool)] = store_bools;
  ops.store[static_cast<int>(ElementType::kU8)] = truncate_tile<uint8_t, int32_t, double>;
  ops.store[static_cast<int>(ElementType::kS8)] = truncate_tile<int8_t, int32_t, double>;
  ops.store[static_cast<int>(ElementType::kU16)] = truncate_tile<uint16_t, int32_t, double>;
  ops.store[static_cast<int>(ElementType::kS16)] = truncate_tile<int16_t, int32_t, double>;
  ops.store[static_cast<int>(ElementType::kU32)] = truncate_tile<uint32_t, int32_t, double>;
  ops.store[static_cast<int>(ElementType::kI32)] = truncate_tile<int32_t, int32_t, double>;
  ops.store[static_cast<int>(ElementType::kU64)] = truncate_tile<uint64_t, int64_t, double>;
  ops.store[static_cast<int>(ElementType::kI64)] = truncate_tile<int64_t, int64_t, double>;
  ops.load[static_cast<int>(ElementType::kF16)] = load_halves<ElementType::kF16>;
  ops.load[static_cast<int>(ElementType::kBf16)] = load_halves<ElementType::kBf16>;
  ops.store[static_cast<int>(ElementType::kF16)] = store_f16;
  ops.store[static_cast<int>(ElementType::kBf16)] = store_bf16;
}

RealOps all_ops() {
  RealOps ops = {};
  for (uint32_t op = 0; op < 256; ++op)
    ops.of[op] = instruction(op);
  ops.of[TN_EXPR_SIGMOID] = sigmoid;
  ops.of[TN_EXPR_POW] = power;
  add_comparisons<double>(ops.compare);
  add_conversions(ops);
  return ops;
}

}  // namespace

void real_ops(const RealOps** ops) {
  static const RealOps kOps = all_ops();
  *ops = &kOps;
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
