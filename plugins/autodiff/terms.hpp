// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scalar terms while a derivative is built: a number that is known, or a value of the graph.
// Products with 0 and 1 and sums with 0 vanish, so the gradient of y = x + 1 is no node at all.

#include "tenon/sdk/build.hpp"

namespace tenon::autodiff {

struct Term {
  Value value;        // falsy: the number
  double number = 0;  // of which type, the terms know
  bool flag = false;  // the value is boolean

  static Term of(double number) { return {{}, number, false}; }
  static Term of(Value value, bool flag = false) { return {value, 0, flag}; }
  bool known() const { return !value; }
  bool is(double other) const { return known() && number == other; }
};

class Terms {
 public:
  Terms(Builder& builder, uint32_t dtype) : b_(builder), dtype_(dtype) {}
  Builder& builder() { return b_; }

  Term add(const Term& a, const Term& b) {
    if (a.is(0)) return b;
    if (b.is(0)) return a;
    return make("Add", a, b, a.number + b.number);
  }
  Term sub(const Term& a, const Term& b) {
    if (b.is(0)) return a;
    if (a.is(0)) return neg(b);
    return make("Sub", a, b, a.number - b.number);
  }
  Term mul(const Term& a, const Term& b) {
    if (a.is(0) || b.is(0)) return Term::of(0);
    if (a.is(1)) return b;
    if (b.is(1)) return a;
    if (a.is(-1)) return neg(b);
    if (b.is(-1)) return neg(a);
    return make("Mul", a, b, a.number * b.number);
  }
  Term div(const Term& a, const Term& b) {
    if (a.is(0)) return a;
    if (b.is(1)) return a;
    return make("Div", a, b, a.number / b.number);
  }
  Term neg(const Term& a) {
    return a.known() ? Term::of(-a.number) : Term::of(b_.neg(value_of(a)));
  }
  // Operators of ONNX by name.
  Term unary(std::string_view type, const Term& a, bool flag = false) {
    return Term::of(b_.op(type, {operand(type, a)}), flag);
  }
  Term binary(std::string_view type, const Term& a, const Term& b, bool flag = false) {
    return Term::of(b_.op(type, {operand(type, a), operand(type, b)}), flag);
  }
  Term select(const Term& condition, const Term& a, const Term& b) {
    if (a.is(0) && b.is(0)) return a;
    return Term::of(b_.op("Where", {flag_of(condition), value_of(a), value_of(b)}));
  }
  Value value_of(const Term& a) {
    if (a.known()) return b_.number(a.number, dtype_);
    return a.flag ? b_.cast(a.value, dtype_) : a.value;
  }
  Value typed(Value value) { return b_.cast(value, dtype_); }
  Value flag_of(const Term& a) {
    if (a.flag) return a.value;
    return b_.cast(value_of(a), TN_BOOL);
  }

 private:
  // ONNX has logic of truth values only.
  Value operand(std::string_view type, const Term& a) {
    const bool is_logic = type == "And" || type == "Or" || type == "Xor" || type == "Not";
    return is_logic ? flag_of(a) : value_of(a);
  }
  Term make(std::string_view type, const Term& a, const Term& b, double both_known) {
    if (a.known() && b.known()) return Term::of(both_known);
    return binary(type, a, b);
  }
  Builder& b_;
  uint32_t dtype_;
};

}  // namespace tenon::autodiff
