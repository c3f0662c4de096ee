// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: sums and products of kernels. Integers that are too large wrap around, as in NumPy; floating-point numbers
// are what they are. Pure functions: any thread.

#include <type_traits>

namespace tenon {

template <class A>
constexpr A wrapping_add(A a, A b) {
  if constexpr (std::is_integral_v<A> && std::is_signed_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <class A>
constexpr A wrapping_sub(A a, A b) {
  if constexpr (std::is_integral_v<A> && std::is_signed_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(a) - static_cast<U>(b));
  } else {
    return a - b;
  }
}

template <class A>
constexpr A wrapping_mul(A a, A b) {
  if constexpr (std::is_integral_v<A> && std::is_signed_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(a) * static_cast<U>(b));
  } else {
    return a * b;
  }
}

}  // namespace tenon
