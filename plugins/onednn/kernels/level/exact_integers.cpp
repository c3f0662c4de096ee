// SPDX-License-Identifier: Apache-2.0
// Instructions and conversions of integers of 64, 32 and 8 bits, one vectorised loop each; contract
// in ../exact_args.h.

#include "tenon/expr.h"

#include "../exact_args.h"
#include "comparisons.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

template <int bytes>
struct UnsignedOf {
  using Type = uint32_t;
  using Real = double;  // whose quotients of such integers are cut as they are
};
template <>
struct UnsignedOf<8> {
  using Type = uint64_t;
};
template <>
struct UnsignedOf<1> {
  using Type = uint8_t;
  using Real = float;
};
// The bits of an N, in which sums and products wrap.
template <class N>
using Bits = typename UnsignedOf<sizeof(N)>::Type;

// Cuts an integer to the width of the node's type and extends it again.
template <class N>
struct Wrap {
  uint32_t bits;
  N operator()(Bits<N> value) const {
    constexpr uint32_t kWidth = 8 * sizeof(N);
    if (bits >= kWidth) return static_cast<N>(value);
    const uint32_t unused = kWidth - bits;
    return static_cast<N>(static_cast<N>(value << unused) >> unused);
  }
};
template <class N>
constexpr bool kIsSigned = N(-1) < N(0);
template <class N>
Bits<N> u(N value) {
  return static_cast<Bits<N>>(value);
}

// Integers of up to 32 bits as reals: a quotient that is not whole is further from the next integer
// than it is rounded, so that cutting it gives what integers give, and loops run in vectors.
template <class N>
N quotient(N a, N b, Wrap<N> w) {
  constexpr N kMinusOne = static_cast<N>(-1);
  const bool is_negation = kIsSigned<N> && b == kMinusOne;  // of the least integer it wraps
  if constexpr (sizeof(N) == 8) {
    if (b == 0) return 0;
    return is_negation ? w(-u(a)) : a / b;
  } else {
    using Real = typename UnsignedOf<sizeof(N)>::Real;
    const N divisor = b == 0 || is_negation ? N(1) : b;
    const N cut = static_cast<N>(static_cast<Real>(a) / static_cast<Real>(divisor));
    return b == 0 ? N(0) : is_negation ? w(-u(a)) : cut;
  }
}
template <class N>
N remainder(N a, N b, bool sign_of_divisor, Wrap<N> w) {
  if constexpr (sizeof(N) == 8) {
    if (b == 0 || (kIsSigned<N> && b == static_cast<N>(-1))) return 0;
    const N r = a % b;
    return sign_of_divisor && r != 0 && (r < 0) != (b < 0) ? r + b : r;
  } else {
    const N r = w(u(a) - u(quotient<N>(a, b, w)) * u(b));
    const bool moves = sign_of_divisor && r != 0 && (r < 0) != (b < 0);
    return b == 0 ? N(0) : moves ? static_cast<N>(r + b) : r;
  }
}
template <class N>
N power(N base, N exponent, Wrap<N> w) {
  if constexpr (kIsSigned<N>) {
    if (exponent < 0) return base == 1 ? 1 : (base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0);
  }
  Bits<N> result = 1;
  Bits<N> factor = u(base);
  for (Bits<N> left = u(exponent); left != 0; left >>= 1, factor *= factor) {
    if ((left & 1) != 0) result *= factor;
  }
  return w(result);
}
template <class N>
N shift_left(N a, N count, Wrap<N> w) {
  return u(count) >= w.bits ? N(0) : w(u(a) << count);
}
template <class N>
N shift_right(N a, N count, Wrap<N> w) {
  if (u(count) >= w.bits) return a < 0 ? N(-1) : N(0);
  return static_cast<N>(a >> count);
}

// Same bits, other type: signed and unsigned integers may alias.
template <class N, class Stored>
const N* as(const Stored* numbers) {
  return reinterpret_cast<const N*>(numbers);
}

template <class N, class Stored, class F>
void over_tile(
    const Stored* a, const Stored* b, const Stored* c, int64_t n, Stored* out, const F& f) {
  const N *x = as<N>(a), *y = as<N>(b), *z = as<N>(c);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<Stored>(f(x[i], y[i], z[i]));
}

// In the place of an opcode's loop; of others null.
template <class N, class Stored>
constexpr IntegerOp<Stored> instruction(uint32_t op) {
  switch (op) {
#define TENON_EXACT_REAL(name, formula)
#define TENON_EXACT_FUNCTION(name, function)
#define TENON_EXACT_FUNCTION_OF_TWO(name, function)
#define TENON_EXACT_INTEGER(name, formula)                                                      \
  case TN_EXPR_##name:                                                                          \
    return [](const Stored* x, const Stored* y, const Stored* z, uint32_t bits, int64_t n,      \
              Stored* out) {                                                                    \
      [[maybe_unused]] const Wrap<N> w{bits};                                                   \
      over_tile<N>(x, y, z, n, out, [w](N a, [[maybe_unused]] N b, [[maybe_unused]] N c) -> N { \
        (void)w;                                                                                \
        (void)a;                                                                                \
        return formula;                                                                         \
      });                                                                                       \
    };
#define TENON_EXACT(name, real, integer) TENON_EXACT_INTEGER(name, integer)
#include "../exact_ops.def"
#undef TENON_EXACT_REAL
#undef TENON_EXACT_FUNCTION
#undef TENON_EXACT_FUNCTION_OF_TWO
#undef TENON_EXACT_INTEGER
#undef TENON_EXACT
    default:
      return nullptr;
  }
}

template <class N>
void multiply_by(N* totals, const N* factors, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    totals[i] *= factors[i];
}

// Of exponents that are all the same and not negative, squares and products of the whole tile.
template <class N, class Stored>
void power_tile(
    const Stored* a, const Stored* b, const Stored* c, uint32_t bits, int64_t n, Stored* out) {
  constexpr int64_t kTile = kExactTile * 8 / static_cast<int64_t>(sizeof(N));
  Bits<N> others = 0;
  for (int64_t i = 0; i < n; ++i)
    others |= static_cast<Bits<N>>(b[i] ^ b[0]);
  if (n == 0 || n > kTile || others != 0 || *as<N>(b) < 0)
    return instruction<N, Stored>(TN_EXPR_POW)(a, b, c, bits, n, out);
  Bits<N> factors[kTile];
  Bits<N> results[kTile];
  for (int64_t i = 0; i < n; ++i) {
    factors[i] = static_cast<Bits<N>>(a[i]);
    results[i] = 1;
  }
  for (Bits<N> left = static_cast<Bits<N>>(b[0]); left != 0; left >>= 1) {
    if ((left & 1) != 0) multiply_by(results, factors, n);
    if (left > 1) multiply_by(factors, factors, n);
  }
  const Wrap<N> w{bits};
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<Stored>(w(results[i]));
}

template <class T, class Stored>
void load_tile(const void* src, int64_t stride, int64_t n, Stored* out) {
  const T* from = static_cast<const T*>(src);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<Stored>(from[i]);
  } else if (stride == 0) {
    const Stored value = static_cast<Stored>(*from);
    for (int64_t i = 0; i < n; ++i)
      out[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<Stored>(from[i * stride]);
  }
}

// Cuts to the width of T.
template <class T, class Stored>
void store_tile(const Stored* from, int64_t n, void* dst) {
  T* to = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<T>(from[i]);
}
// A bool is a byte of 0 or 1; compared in the width of the numbers the loop runs in vectors.
template <class Stored>
void store_truths(const Stored* from, int64_t n, void* dst) {
  uint8_t* to = static_cast<uint8_t*>(dst);
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<uint8_t>(from[i] != 0);
}

template <class T, class Stored>
void add_type(IntegerOps<Stored>& ops, ElementType type) {
  ops.load[static_cast<int>(type)] = load_tile<T, Stored>;
  ops.store[static_cast<int>(type)] = store_tile<T, Stored>;
}

template <class Stored>
IntegerOps<Stored> all_ops() {
  using Unsigned = Bits<Stored>;
  IntegerOps<Stored> ops = {};
  for (uint32_t op = 0; op < 256; ++op) {
    ops.of_signed[op] = instruction<Stored, Stored>(op);
    ops.of_unsigned[op] = instruction<Unsigned, Stored>(op);
  }
  ops.of_signed[TN_EXPR_POW] = power_tile<Stored, Stored>;
  ops.of_unsigned[TN_EXPR_POW] = power_tile<Unsigned, Stored>;
  add_comparisons<Stored>(ops.compare_signed);
  add_comparisons<Unsigned>(ops.compare_unsigned);
  add_type<uint8_t>(ops, ElementType::kU8);
  add_type<int8_t>(ops, ElementType::kS8);
  ops.load[static_cast<int>(ElementType::kBool)] = load_tile<uint8_t, Stored>;
  ops.store[static_cast<int>(ElementType::kBool)] = store_truths<Stored>;
  if constexpr (sizeof(Stored) >= 4) {
    add_type<uint16_t>(ops, ElementType::kU16);
    add_type<int16_t>(ops, ElementType::kS16);
    add_type<uint32_t>(ops, ElementType::kU32);
    add_type<int32_t>(ops, ElementType::kI32);
  }
  if constexpr (sizeof(Stored) == 8) {
    add_type<uint64_t>(ops, ElementType::kU64);
    add_type<int64_t>(ops, ElementType::kI64);
  }
  return ops;
}

}  // namespace

void integer_ops(const IntegerOps<int64_t>** ops) {
  static const IntegerOps<int64_t> kOps = all_ops<int64_t>();
  *ops = &kOps;
}
void word_ops(const IntegerOps<int32_t>** ops) {
  static const IntegerOps<int32_t> kOps = all_ops<int32_t>();
  *ops = &kOps;
}
void byte_ops(const IntegerOps<int8_t>** ops) {
  static const IntegerOps<int8_t> kOps = all_ops<int8_t>();
  *ops = &kOps;
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
