// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: the integer that a floating-point number becomes. C++ leaves open what
// happens where the type does not hold it, and ONNX does too; here it is what the instructions of
// x86 give, and by them NumPy, PyTorch and ONNX Runtime. Pure functions: any thread.

#include <cstdint>
#include <limits>
#include <type_traits>

namespace tenon {
namespace detail {

// Cut towards zero. What a type with a sign does not hold, and NaN, is its lowest number.
template <class Signed>
constexpr Signed cut(double x) {
  constexpr auto kLowest = static_cast<double>(std::numeric_limits<Signed>::min());
  return static_cast<Signed>(x >= kLowest && x < -kLowest ? x : kLowest);
}

// The upper half of a type without a sign is the lower one and the highest bit; negative numbers
// wrap around.
template <class Signed>
constexpr std::make_unsigned_t<Signed> cut_unsigned(double x) {
  using Unsigned = std::make_unsigned_t<Signed>;
  constexpr Signed kLowest = std::numeric_limits<Signed>::min();
  constexpr auto kHalf = -static_cast<double>(kLowest);
  if (!(x >= kHalf)) return static_cast<Unsigned>(cut<Signed>(x));
  return static_cast<Unsigned>(cut<Signed>(x - kHalf)) ^ static_cast<Unsigned>(kLowest);
}

}  // namespace detail

// x as an integer of so many bits, at most 64; those of fewer than 32 are the low bits of one of
// 32. Of an unsigned integer of 64 bits, the bits.
constexpr int64_t integer_of(double x, bool is_signed, uint32_t bits) {
  if (bits > 32)
    return is_signed ? detail::cut<int64_t>(x)
                     : static_cast<int64_t>(detail::cut_unsigned<int64_t>(x));
  if (bits == 32 && !is_signed) return detail::cut_unsigned<int32_t>(x);
  return detail::cut<int32_t>(x);
}

}  // namespace tenon
