// SPDX-License-Identifier: Apache-2.0
#include "derivatives.hpp"

#include <cmath>
#include <numbers>

#include "tenon/sdk/match.hpp"

namespace tenon::autodiff {
namespace {

// How an intrinsic is built from operators of ONNX.
struct Forward {
  uint32_t op;
  const char* type;
  bool flag = false;  // gives a boolean
};
constexpr Forward kForward[] = {
    {TN_EXPR_NEG, "Neg"},
    {TN_EXPR_ABS, "Abs"},
    {TN_EXPR_SIGN, "Sign"},
    {TN_EXPR_EXP, "Exp"},
    {TN_EXPR_LOG, "Log"},
    {TN_EXPR_SQRT, "Sqrt"},
    {TN_EXPR_RECIPROCAL, "Reciprocal"},
    {TN_EXPR_ERF, "Erf"},
    {TN_EXPR_TANH, "Tanh"},
    {TN_EXPR_SIGMOID, "Sigmoid"},
    {TN_EXPR_SIN, "Sin"},
    {TN_EXPR_COS, "Cos"},
    {TN_EXPR_TAN, "Tan"},
    {TN_EXPR_ASIN, "Asin"},
    {TN_EXPR_ACOS, "Acos"},
    {TN_EXPR_ATAN, "Atan"},
    {TN_EXPR_SINH, "Sinh"},
    {TN_EXPR_COSH, "Cosh"},
    {TN_EXPR_ASINH, "Asinh"},
    {TN_EXPR_ACOSH, "Acosh"},
    {TN_EXPR_ATANH, "Atanh"},
    {TN_EXPR_FLOOR, "Floor"},
    {TN_EXPR_CEIL, "Ceil"},
    {TN_EXPR_ROUND, "Round"},
    {TN_EXPR_NOT, "Not", true},
    {TN_EXPR_ISNAN, "IsNaN", true},
    {TN_EXPR_ISINF, "IsInf", true},
    {TN_EXPR_ADD, "Add"},
    {TN_EXPR_SUB, "Sub"},
    {TN_EXPR_MUL, "Mul"},
    {TN_EXPR_DIV, "Div"},
    {TN_EXPR_POW, "Pow"},
    {TN_EXPR_MIN, "Min"},
    {TN_EXPR_MAX, "Max"},
    {TN_EXPR_MOD, "Mod"},
    {TN_EXPR_EQ, "Equal", true},
    {TN_EXPR_LT, "Less", true},
    {TN_EXPR_LE, "LessOrEqual", true},
    {TN_EXPR_GT, "Greater", true},
    {TN_EXPR_GE, "GreaterOrEqual", true},
    {TN_EXPR_AND, "And", true},
    {TN_EXPR_OR, "Or", true},
    {TN_EXPR_XOR, "Xor", true},
};

Term scaled_by_rsqrt(Site& s, const Term& g, const Term& inside) {
  return s.t.div(g, s.t.unary("Sqrt", inside));
}
Term square_of_a(Site& s) {
  return s.t.mul(s.a(), s.a());
}
// 1 - a*a, exact where a is near 1 or -1.
Term one_less_square(Site& s) {
  return s.t.mul(s.t.sub(Term::of(1), s.a()), s.t.add(s.a(), Term::of(1)));
}
// Where a function is flat, what comes for it counts for nothing, be it infinite: x*sigmoid(x) has
// the slope 1 at infinity.
Term by_slope(Site& s, const Term& g, const Term& slope) {
  Term product = s.t.mul(g, slope);
  if (s.is_result()) return product;
  Term flat = s.t.binary("Equal", slope, Term::of(0), true);
  return s.t.select(flat, Term::of(0), product);
}
// What floor(a/b) or trunc(a/b) is, from the remainder: a/b itself may round up to the next number.
Term whole_quotient(Site& s) {
  return s.t.unary("Round", s.t.div(s.t.sub(s.a(), s.result()), s.b()));
}
Term less_quotient(Site& s, const Term& g) {
  return s.t.neg(s.t.mul(g, whole_quotient(s)));
}
// Operands divided by the larger one, so that no square overflows or vanishes.
struct Angle {
  Term up, right, length;  // a/m, b/m, (a*a + b*b)/m
};
Angle angle(Site& s) {
  Term m = s.t.binary("Max", s.t.unary("Abs", s.a()), s.t.unary("Abs", s.b()));
  Term up = s.t.div(s.a(), m), right = s.t.div(s.b(), m);
  return {up, right, s.t.mul(m, s.t.add(s.t.mul(up, up), s.t.mul(right, right)))};
}
// Where the exponent is 0 the slope is 0, but it grows as the exponent does: only where the base is
// 0 too is it cut off, by a safe base, so that second derivatives are no NaN there.
Term pow_to_base(Site& s, const Term& g) {
  Term a = s.a(), b = s.b();
  if (b.is(0)) return Term::of(0);
  if (b.is(1)) return g;
  if (b.is(2)) return s.t.mul(g, s.t.mul(Term::of(2), a));
  if (!b.known()) {
    Term both = s.t.binary("And", s.t.binary("Equal", a, Term::of(0), true),
                           s.t.binary("Equal", b, Term::of(0), true), true);
    a = s.t.select(both, Term::of(1), a);
  }
  return s.t.mul(g, s.t.mul(b, s.t.binary("Pow", a, s.t.sub(b, Term::of(1)))));
}
// The logarithm of a safe base, so that second derivatives are no NaN either.
Term pow_to_exponent(Site& s, const Term& g) {
  Term zero = s.t.binary("And", s.t.binary("Equal", s.a(), Term::of(0), true),
                         s.t.binary("GreaterOrEqual", s.b(), Term::of(0), true), true);
  Term log = s.t.unary("Log", s.t.select(zero, Term::of(1), s.a()));
  return s.t.mul(g, s.t.mul(s.result(), log));
}

constexpr Derivative kDerivatives[] = {
    {TN_EXPR_NEG, [](Site& s, const Term& g) { return s.t.neg(g); }},
    {TN_EXPR_ABS, [](Site& s, const Term& g) { return s.t.mul(g, s.t.unary("Sign", s.a())); }},
    {TN_EXPR_EXP, [](Site& s, const Term& g) { return s.t.mul(g, s.result()); }},
    {TN_EXPR_EXPM1, [](Site& s, const Term& g) { return s.t.mul(g, s.t.unary("Exp", s.a())); }},
    {TN_EXPR_LOG, [](Site& s, const Term& g) { return s.t.div(g, s.a()); }},
    {TN_EXPR_LOG1P, [](Site& s, const Term& g) { return s.t.div(g, s.t.add(s.a(), Term::of(1))); }},
    {TN_EXPR_SQRT,
     [](Site& s, const Term& g) { return s.t.div(s.t.mul(g, Term::of(0.5)), s.result()); }},
    {TN_EXPR_RSQRT,
     [](Site& s, const Term& g) {
       Term r = s.result();
       return s.t.mul(s.t.mul(g, Term::of(-0.5)), s.t.mul(r, s.t.mul(r, r)));
     }},
    {TN_EXPR_RECIPROCAL,
     [](Site& s, const Term& g) { return s.t.neg(s.t.mul(g, s.t.mul(s.result(), s.result()))); }},
    {TN_EXPR_ERF,
     [](Site& s, const Term& g) {
       Term bell = s.t.unary("Exp", s.t.neg(square_of_a(s)));
       return by_slope(s, g, s.t.mul(Term::of(2 * std::numbers::inv_sqrtpi), bell));
     }},
    {TN_EXPR_TANH,
     [](Site& s, const Term& g) {
       return by_slope(s, g, s.t.sub(Term::of(1), s.t.mul(s.result(), s.result())));
     }},
    {TN_EXPR_SIGMOID,
     [](Site& s, const Term& g) {
       return by_slope(s, g, s.t.mul(s.result(), s.t.sub(Term::of(1), s.result())));
     }},
    {TN_EXPR_SIN, [](Site& s, const Term& g) { return s.t.mul(g, s.t.unary("Cos", s.a())); }},
    {TN_EXPR_COS,
     [](Site& s, const Term& g) { return s.t.neg(s.t.mul(g, s.t.unary("Sin", s.a()))); }},
    {TN_EXPR_TAN,
     [](Site& s, const Term& g) {
       return s.t.mul(g, s.t.add(s.t.mul(s.result(), s.result()), Term::of(1)));
     }},
    {TN_EXPR_ASIN,
     [](Site& s, const Term& g) { return scaled_by_rsqrt(s, g, one_less_square(s)); }},
    {TN_EXPR_ACOS,
     [](Site& s, const Term& g) { return s.t.neg(scaled_by_rsqrt(s, g, one_less_square(s))); }},
    {TN_EXPR_ATAN,
     [](Site& s, const Term& g) { return s.t.div(g, s.t.add(square_of_a(s), Term::of(1))); }},
    {TN_EXPR_SINH, [](Site& s, const Term& g) { return s.t.mul(g, s.t.unary("Cosh", s.a())); }},
    {TN_EXPR_COSH, [](Site& s, const Term& g) { return s.t.mul(g, s.t.unary("Sinh", s.a())); }},
    {TN_EXPR_ASINH,
     [](Site& s, const Term& g) {
       return scaled_by_rsqrt(s, g, s.t.add(square_of_a(s), Term::of(1)));
     }},
    {TN_EXPR_ACOSH,
     [](Site& s, const Term& g) {
       Term below = s.t.unary("Sqrt", s.t.sub(s.a(), Term::of(1)));
       Term above = s.t.unary("Sqrt", s.t.add(s.a(), Term::of(1)));
       return s.t.div(s.t.div(g, below), above);
     }},
    {TN_EXPR_ATANH, [](Site& s, const Term& g) { return s.t.div(g, one_less_square(s)); }},
    {TN_EXPR_ADD, [](Site&, const Term& g) { return g; }, [](Site&, const Term& g) { return g; }},
    {TN_EXPR_SUB, [](Site&, const Term& g) { return g; },
     [](Site& s, const Term& g) { return s.t.neg(g); }},
    {TN_EXPR_MUL, [](Site& s, const Term& g) { return s.t.mul(g, s.b()); },
     [](Site& s, const Term& g) { return s.t.mul(g, s.a()); }},
    {TN_EXPR_DIV, [](Site& s, const Term& g) { return s.t.div(g, s.b()); },
     [](Site& s, const Term& g) { return s.t.neg(s.t.div(s.t.mul(g, s.result()), s.b())); }},
    {TN_EXPR_POW, pow_to_base, pow_to_exponent},
    {TN_EXPR_MOD, [](Site&, const Term& g) { return g; }, less_quotient},
    {TN_EXPR_FMOD, [](Site&, const Term& g) { return g; }, less_quotient},
    {TN_EXPR_ATAN2,
     [](Site& s, const Term& g) {
       Angle at = angle(s);
       return s.t.div(s.t.mul(g, at.right), at.length);
     },
     [](Site& s, const Term& g) {
       Angle at = angle(s);
       return s.t.neg(s.t.div(s.t.mul(g, at.up), at.length));
     }},
};

}  // namespace

Term Site::forward(uint64_t i) {
  if (!made_[i]) made_[i] = build(i);
  return *made_[i];
}

Term Site::build(uint64_t i) {
  const tn_expr_node& n = at(i);
  if (n.op == TN_EXPR_CONST) return Term::of(n.imm);
  if (n.op == TN_EXPR_INPUT) {
    Value input = gradients_.of().input(n.a);
    // What the gradient is by changes in training: it is not the number that it is now.
    std::optional<double> number;
    if (!gradients_.wanted(n.a)) number = scalar_of(input);
    if (number) return Term::of(*number);
    if (input.dtype() == TN_BOOL) return Term::of(input, true);
    return Term::of(t.typed(input));  // the exponents of Pow may be integers
  }
  switch (n.op) {        // those that are more than one operator
    case TN_EXPR_EXPM1:  // exp(a) - 1 loses its digits near 0
      return t.mul(t.unary("Tanh", t.mul(forward(n.a), Term::of(0.5))),
                   t.add(t.unary("Exp", forward(n.a)), Term::of(1)));
    case TN_EXPR_LOG1P:
      return t.unary("Log", t.add(forward(n.a), Term::of(1)));
    case TN_EXPR_RSQRT:
      return t.unary("Reciprocal", t.unary("Sqrt", forward(n.a)));
    case TN_EXPR_TRUNC:
      return t.mul(t.unary("Sign", forward(n.a)), t.unary("Floor", t.unary("Abs", forward(n.a))));
    case TN_EXPR_NE:
      return t.unary("Not", t.binary("Equal", forward(n.a), forward(n.b), true), true);
    case TN_EXPR_FMOD:
      return Term::of(t.builder().op("Mod", {t.value_of(forward(n.a)), t.value_of(forward(n.b))},
                                     {{"fmod", 1}}));
    case TN_EXPR_SELECT:
      return t.select(forward(n.a), forward(n.b), forward(n.c));
    default:
      break;
  }
  for (const Forward& rule : kForward) {
    if (rule.op != n.op) continue;
    Term a = forward(n.a);
    if (n.op < TN_EXPR_ADD) return t.unary(rule.type, a, rule.flag);
    return t.binary(rule.type, a, forward(n.b), rule.flag);
  }
  t.builder().fail(unsupported(cat("expr: intrinsic ", n.op, " has no operator of its own")));
  return {};
}

const Derivative* derivative_of(uint32_t op) {
  for (const Derivative& row : kDerivatives)
    if (row.op == op) return &row;
  return nullptr;
}

}  // namespace tenon::autodiff
