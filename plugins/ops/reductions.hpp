// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the elements of a Reduce operator join.

#include <cmath>
#include <limits>
#include <type_traits>

#include "tenon/wrapping.hpp"

namespace tenon::ops::reductions {

// One reduction: how elements join, and how the result leaves. Acc is double for floats, and 64-bit
// integers for integers.
struct Sum {
  template <class A>
  static A first() {
    return 0;
  }
  template <class A>
  static A join(A a, A x) {
    return wrapping_add(a, x);
  }
  template <class A>
  static A last(A a, double) {
    return a;
  }
};
struct SumSquare : Sum {
  template <class A>
  static A join(A a, A x) {
    return wrapping_add(a, wrapping_mul(x, x));
  }
};
struct Norm1 : Sum {
  template <class A>
  static A join(A a, A x) {
    return x < A(0) ? wrapping_sub(a, x) : wrapping_add(a, x);
  }
};
struct Norm2 : SumSquare {
  template <class A>
  static A last(A a, double) {
    return static_cast<A>(std::sqrt(double(a)));
  }
};
struct LogSum : Sum {
  template <class A>
  static A last(A a, double) {
    return static_cast<A>(std::log(double(a)));
  }
};
struct Mean : Sum {
  template <class A>
  static A last(A a, double n) {
    if constexpr (std::is_integral_v<A>)
      return n == 0 ? A(0) : a / static_cast<A>(n);
    else
      return a / n;
  }
};
struct Prod : Sum {
  template <class A>
  static A first() {
    return 1;
  }
  template <class A>
  static A join(A a, A x) {
    return wrapping_mul(a, x);
  }
};
struct Max : Sum {
  template <class A>
  static A first() {
    return std::is_integral_v<A> ? std::numeric_limits<A>::lowest()
                                 : -std::numeric_limits<A>::infinity();
  }
  template <class A>
  static A join(A a, A x) {
    return x > a || x != x ? x : a;
  }
};
struct Min : Sum {
  template <class A>
  static A first() {
    return std::is_integral_v<A> ? std::numeric_limits<A>::max()
                                 : std::numeric_limits<A>::infinity();
  }
  template <class A>
  static A join(A a, A x) {
    return x < a || x != x ? x : a;
  }
};

}  // namespace tenon::ops::reductions
