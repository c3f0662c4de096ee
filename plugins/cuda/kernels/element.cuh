// SPDX-License-Identifier: Apache-2.0
// Element types, vectors of them and the scalar functions of abi/expr.md. Included by the kernels
// here and put in front of every generated kernel, so it includes nothing and needs no toolkit
// header. It compiles as plain C++ too, which is how kernels are tested without a GPU.
#ifndef TENON_CUDA_ELEMENT_CUH
#define TENON_CUDA_ELEMENT_CUH
#ifdef __CUDACC__
#define TN_FN __device__ __forceinline__
#define TN_KERNEL(symbol, Args) extern "C" __global__ void symbol(const Args args)
#define TN_BLOCK_KERNEL(symbol, Args) TN_KERNEL(symbol, Args)
#endif

namespace tn {

typedef unsigned long long u64;
typedef long long i64;

struct F16 {
  unsigned short bits;
};
struct BF16 {
  unsigned short bits;
};
struct F8E4M3 {
  unsigned char bits;
};
struct F8E5M2 {
  unsigned char bits;
};
struct Bool {
  unsigned char byte;
};

template <class To, class From>
TN_FN To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

TN_FN float infinity() {
  return same_bits<float>(0x7f800000u);
}
TN_FN float quiet_nan() {
  return same_bits<float>(0x7fc00000u);
}

// Round to nearest, ties to even, in all conversions.
TN_FN float value(F16 x) {
#ifdef __CUDA_ARCH__
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
  return out;
#else
  unsigned sign = static_cast<unsigned>(x.bits >> 15) << 31;
  unsigned exponent = x.bits >> 10 & 31u, fraction = x.bits & 1023u;
  if (exponent == 31) return same_bits<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    float small = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -small : small;
  }
  return same_bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
#endif
}
TN_FN F16 half_of(float x) {
#ifdef __CUDA_ARCH__
  F16 out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
  return out;
#else
  unsigned bits = same_bits<unsigned>(x), sign = bits >> 16 & 0x8000u,
           magnitude = bits & ~(1u << 31);
  if (magnitude > 0x7f800000u) return {static_cast<unsigned short>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<unsigned short>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {  // subnormal: the addition rounds to multiples of 2^-24
    unsigned rounded = same_bits<unsigned>(same_bits<float>(magnitude) + 0.5f);
    return {static_cast<unsigned short>(sign | (rounded - 0x3f000000u))};
  }
  unsigned rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23);
  return {static_cast<unsigned short>(sign | rounded >> 13)};
#endif
}
TN_FN float value(BF16 x) {
  return same_bits<float>(static_cast<unsigned>(x.bits) << 16);
}
TN_FN BF16 bfloat_of(float x) {
  unsigned bits = same_bits<unsigned>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fc0};
  return {static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

// Sign, exponent with this bias, fraction of this many bits; what is too large becomes `top`.
TN_FN unsigned char mini_of(float x, int fraction, int bias, unsigned top) {
  const unsigned bits = same_bits<unsigned>(x), sign = bits >> 24 & 0x80u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<unsigned char>(sign | 0x7fu);
  unsigned code = 0;
  if (magnitude < static_cast<unsigned>(128 - bias) << 23) {
    // Subnormal: adding a number whose last place is theirs rounds to it.
    const unsigned magic = static_cast<unsigned>(127 + 24 - bias - fraction) << 23;
    code = same_bits<unsigned>(same_bits<float>(magnitude) + same_bits<float>(magic)) - magic;
  } else {
    const int shift = 23 - fraction;
    const unsigned half = (1u << (shift - 1)) - 1 + (magnitude >> shift & 1u);
    code = (magnitude + half) >> shift;
    code -= static_cast<unsigned>(127 - bias) << fraction;
  }
  return static_cast<unsigned char>(sign | (code < top ? code : top));
}
TN_FN float value(F8E4M3 x) {
  const unsigned sign = static_cast<unsigned>(x.bits >> 7) << 31;
  const unsigned exponent = x.bits >> 3 & 15u, fraction = x.bits & 7u;
  if ((x.bits & 0x7fu) == 0x7fu) return quiet_nan();
  if (exponent == 0) {
    float small = static_cast<float>(fraction) * 0x1p-9f;
    return sign ? -small : small;
  }
  return same_bits<float>(sign | (exponent + 120) << 23 | fraction << 20);
}
TN_FN float value(F8E5M2 x) {
  return value(F16{static_cast<unsigned short>(x.bits << 8)});
}

// What an element is in a register: float, double, i64 or u64.
TN_FN float value(float x) {
  return x;
}
TN_FN double value(double x) {
  return x;
}
TN_FN i64 value(signed char x) {
  return x;
}
TN_FN i64 value(short x) {
  return x;
}
TN_FN i64 value(int x) {
  return x;
}
TN_FN i64 value(i64 x) {
  return x;
}
TN_FN u64 value(unsigned char x) {
  return x;
}
TN_FN u64 value(unsigned short x) {
  return x;
}
TN_FN u64 value(unsigned x) {
  return x;
}
TN_FN u64 value(u64 x) {
  return x;
}
TN_FN u64 value(Bool x) {
  return x.byte != 0;
}

// What is before the point of a number. What an integer with a sign does not hold, and NaN, is its
// lowest number.
template <class Signed, class R>
TN_FN Signed cut(R x) {
  constexpr R half = sizeof(Signed) == 8 ? R(0x1p63) : R(0x1p31);
  return x >= -half && x < half ? static_cast<Signed>(x) : static_cast<Signed>(-half);
}
// As tenon/whole.hpp has it for an element of that many bytes, with or without a sign: by way of
// one with a sign, of 32 bits at least.
template <class E, class R>
TN_FN E whole_number(R x) {
  constexpr bool is_wide = sizeof(E) == 8, is_split = E(-1) > E(0) && sizeof(E) >= 4;
  constexpr R half = is_wide ? R(0x1p63) : R(0x1p31);
  const bool is_upper = is_split && x >= half;
  if (is_upper) x -= half;
  const E low = is_wide ? static_cast<E>(cut<i64>(x)) : static_cast<E>(cut<int>(x));
  return is_upper ? static_cast<E>(low ^ (E(1) << (8 * sizeof(E) - 1))) : low;
}
template <class E>
TN_FN E whole(float x) {
  return whole_number<E>(x);
}
template <class E>
TN_FN E whole(double x) {
  return whole_number<E>(x);
}
template <class E>
TN_FN E whole(i64 x) {
  return static_cast<E>(x);
}
template <class E>
TN_FN E whole(u64 x) {
  return static_cast<E>(x);
}

// A register as an element, converted as Cast does.
template <class E>
struct Convert {
  template <class R>
  static TN_FN E from(R x) {
    return whole<E>(x);
  }
};
template <>
struct Convert<float> {
  template <class R>
  static TN_FN float from(R x) {
    return static_cast<float>(x);
  }
};
template <>
struct Convert<double> {
  template <class R>
  static TN_FN double from(R x) {
    return static_cast<double>(x);
  }
};
template <>
struct Convert<F16> {
  template <class R>
  static TN_FN F16 from(R x) {
    return half_of(static_cast<float>(x));
  }
};
template <>
struct Convert<BF16> {
  template <class R>
  static TN_FN BF16 from(R x) {
    return bfloat_of(static_cast<float>(x));
  }
};
template <>
struct Convert<F8E4M3> {
  template <class R>
  static TN_FN F8E4M3 from(R x) {
    return {mini_of(static_cast<float>(x), 3, 7, 0x7eu)};
  }
};
template <>
struct Convert<F8E5M2> {
  template <class R>
  static TN_FN F8E5M2 from(R x) {
    return {mini_of(static_cast<float>(x), 2, 15, 0x7bu)};
  }
};
template <>
struct Convert<Bool> {
  template <class R>
  static TN_FN Bool from(R x) {
    return {static_cast<unsigned char>(x != 0)};
  }
};

template <class E, int N>
struct alignas(sizeof(E) * N) Vector {
  E at[N];
};
template <int N, class E>
TN_FN Vector<E, N> load(const E* from) {
  return *reinterpret_cast<const Vector<E, N>*>(from);
}
template <class E, int N>
TN_FN void store(E* to, const Vector<E, N>& from) {
  *reinterpret_cast<Vector<E, N>*>(to) = from;
}

// Scalar functions of abi/expr.md where the language has none, or other rules.
template <class R>
TN_FN R low(R a, R b) {
  return a < b || a != a ? a : b;
}
template <class R>
TN_FN R high(R a, R b) {
  return a > b || a != a ? a : b;
}
template <class R>
TN_FN R sign(R a) {
  return a > 0 ? R(1) : a < 0 ? R(-1) : a == 0 ? R(0) : a;
}
template <class R>
TN_FN R sigmoid(R a) {
  R e = exp(a < 0 ? a : -a);
  return (a < 0 ? e : R(1)) / (1 + e);
}
template <class R>
TN_FN R floor_mod(R a, R b) {
  R r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Integers: cut to bits and extended again after each operation.
TN_FN i64 wrap(i64 x, int bits) {
  return static_cast<i64>(static_cast<u64>(x) << (64 - bits)) >> (64 - bits);
}
TN_FN u64 wrap(u64 x, int bits) {
  return x << (64 - bits) >> (64 - bits);
}
template <class I>
TN_FN I whole_add(I a, I b) {
  return static_cast<I>(static_cast<u64>(a) + static_cast<u64>(b));
}
template <class I>
TN_FN I whole_sub(I a, I b) {
  return static_cast<I>(static_cast<u64>(a) - static_cast<u64>(b));
}
template <class I>
TN_FN I whole_mul(I a, I b) {
  return static_cast<I>(static_cast<u64>(a) * static_cast<u64>(b));
}
TN_FN i64 whole_div(i64 a, i64 b) {
  return b == 0 ? 0 : b == -1 ? whole_sub<i64>(0, a) : a / b;
}
TN_FN u64 whole_div(u64 a, u64 b) {
  return b == 0 ? 0 : a / b;
}
TN_FN i64 whole_fmod(i64 a, i64 b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
TN_FN u64 whole_fmod(u64 a, u64 b) {
  return b == 0 ? 0 : a % b;
}
template <class I>
TN_FN I whole_mod(I a, I b) {
  I r = whole_fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class I>
TN_FN I whole_pow(I base, I exponent) {
  if (exponent < 0) {
    if (base == I(1)) return I(1);
    return base == I(-1) ? (exponent & 1 ? I(-1) : I(1)) : I(0);
  }
  I r = 1;
  for (u64 left = static_cast<u64>(exponent); left; left >>= 1) {
    if (left & 1) r = whole_mul(r, base);
    base = whole_mul(base, base);
  }
  return r;
}
template <class I>
TN_FN I shift_left(I a, I n, int bits) {
  return n < 0 || n >= I(bits) ? I(0) : static_cast<I>(static_cast<u64>(a) << n);
}
template <class I>
TN_FN I shift_right(I a, I n, int bits) {
  return n < 0 || n >= I(bits) ? (a < 0 ? I(-1) : I(0)) : a >> n;
}

}  // namespace tn

#endif
