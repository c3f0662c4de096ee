// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: sums and products of kernels. Integers that are too large wrap around, as in NumPy; floating-point numbers
// are what they are. Pure functions: any thread.

#include <type_traits>

namespace tenon {
namespace detail {

// What wraps around in C++: unsigned integers that are not promoted to int.
template <class A>
constexpr auto wrapping(A a) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<std::common_type_t<std::make_unsigned_t<A>, unsigned>>(a);
  else
    return a;
}

}  // namespace detail

template <class A>
constexpr A wrapping_add(A a, A b) {
  return static_cast<A>(detail::wrapping(a) + detail::wrapping(b));
}

template <class A>
constexpr A wrapping_sub(A a, A b) {
  return static_cast<A>(detail::wrapping(a) - detail::wrapping(b));
}

template <class A>
constexpr A wrapping_mul(A a, A b) {
  return static_cast<A>(detail::wrapping(a) * detail::wrapping(b));
}

}  // namespace tenon
