// SPDX-License-Identifier: Apache-2.0
#include "pointwise_rule.hpp"

#include <cmath>
#include <numbers>
#include <optional>

#include "tenon/sdk/match.hpp"

#include "terms.hpp"

namespace tenon::autodiff {
namespace {

// One intrinsic while its derivative is built. Operands are made from the node's inputs only when a
// rule asks for them.
class Site {
 public:
  Site(Terms& terms, const tn_expr_program& program, Node node)
      : t(terms), program_(program), node_(node), made_(program.count) {
    made_[program.count - 1] = Term::of(node.output(), node.output().dtype() == TN_BOOL);
  }
  Term forward(uint64_t i);
  const tn_expr_node& at(uint64_t i) const { return program_.nodes[i]; }
  Term a() { return forward(at(here).a); }
  Term b() { return forward(at(here).b); }
  Term result() { return forward(here); }
  bool known(uint32_t operand) {
    const tn_expr_node& n = at(operand);
    if (n.op == TN_EXPR_CONST) return true;
    return n.op == TN_EXPR_INPUT && node_.input(n.a).is_constant();
  }

  Terms& t;
  uint64_t here = 0;

 private:
  Term build(uint64_t i);
  const tn_expr_program& program_;
  Node node_;
  std::vector<std::optional<Term>> made_;
};

Term Site::forward(uint64_t i) {
  if (!made_[i]) made_[i] = build(i);
  return *made_[i];
}

// How an intrinsic is built from operators of ONNX.
struct Forward {
  uint32_t op;
  const char* type;
  bool flag = false;   // gives a boolean
  bool logic = false;  // takes booleans
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
    {TN_EXPR_NOT, "Not", true, true},
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
    {TN_EXPR_AND, "And", true, true},
    {TN_EXPR_OR, "Or", true, true},
    {TN_EXPR_XOR, "Xor", true, true},
};

Term Site::build(uint64_t i) {
  const tn_expr_node& n = at(i);
  if (n.op == TN_EXPR_CONST) return Term::of(n.imm);
  if (n.op == TN_EXPR_INPUT) {
    Value input = node_.input(n.a);
    std::optional<double> number = scalar_of(input);
    return number ? Term::of(*number) : Term::of(input, input.dtype() == TN_BOOL);
  }
  switch (n.op) {  // those that are more than one operator
    case TN_EXPR_EXPM1:
      return t.sub(t.unary("Exp", forward(n.a)), Term::of(1));
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
    if (rule.logic) a = Term::of(t.flag_of(a), true);
    if (n.op < TN_EXPR_ADD) return t.unary(rule.type, a, rule.flag);
    Term b = forward(n.b);
    if (rule.logic) b = Term::of(t.flag_of(b), true);
    return t.binary(rule.type, a, b, rule.flag);
  }
  t.builder().fail(unsupported(cat("expr: intrinsic ", n.op, " has no operator of its own")));
  return {};
}

// What goes to operand a and to operand b, given what came for the result. NULL: nothing does.
using Rule = Term (*)(Site&, const Term& g);
struct Derivative {
  uint32_t op;
  Rule to_a, to_b = nullptr;
};

Term scaled_by_rsqrt(Site& s, const Term& g, const Term& inside) {
  return s.t.div(g, s.t.unary("Sqrt", inside));
}
Term square_of_a(Site& s) {
  return s.t.mul(s.a(), s.a());
}
// The chosen operand takes all; equal ones share, but a constant takes nothing: so relu'(0) is 0.
Term chosen(Site& s, const Term& g, bool first, bool most) {
  const tn_expr_node& n = s.at(s.here);
  Term own = first ? s.a() : s.b(), other = first ? s.b() : s.a();
  Term wins = s.t.binary(most ? "Greater" : "Less", own, other, true);
  if (s.known(first ? n.b : n.a)) return s.t.select(wins, g, Term::of(0));
  Term ties = s.t.binary("Equal", own, other, true);
  return s.t.select(wins, g, s.t.select(ties, s.t.mul(g, Term::of(0.5)), Term::of(0)));
}
Term pow_to_base(Site& s, const Term& g) {
  Term b = s.b();
  if (b.is(0)) return Term::of(0);
  if (b.is(1)) return g;
  if (b.is(2)) return s.t.mul(g, s.t.mul(Term::of(2), s.a()));
  Term slope = s.t.mul(b, s.t.binary("Pow", s.a(), s.t.sub(b, Term::of(1))));
  if (!b.known()) slope = s.t.select(s.t.binary("Equal", b, Term::of(0), true), Term::of(0), slope);
  return s.t.mul(g, slope);
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
       return s.t.mul(g, s.t.mul(Term::of(2 * std::numbers::inv_sqrtpi), bell));
     }},
    {TN_EXPR_TANH,
     [](Site& s, const Term& g) {
       return s.t.mul(g, s.t.sub(Term::of(1), s.t.mul(s.result(), s.result())));
     }},
    {TN_EXPR_SIGMOID,
     [](Site& s, const Term& g) {
       return s.t.mul(g, s.t.mul(s.result(), s.t.sub(Term::of(1), s.result())));
     }},
    {TN_EXPR_SIN, [](Site& s, const Term& g) { return s.t.mul(g, s.t.unary("Cos", s.a())); }},
    {TN_EXPR_COS,
     [](Site& s, const Term& g) { return s.t.neg(s.t.mul(g, s.t.unary("Sin", s.a()))); }},
    {TN_EXPR_TAN,
     [](Site& s, const Term& g) {
       return s.t.mul(g, s.t.add(s.t.mul(s.result(), s.result()), Term::of(1)));
     }},
    {TN_EXPR_ASIN,
     [](Site& s, const Term& g) {
       return scaled_by_rsqrt(s, g, s.t.sub(Term::of(1), square_of_a(s)));
     }},
    {TN_EXPR_ACOS,
     [](Site& s, const Term& g) {
       return s.t.neg(scaled_by_rsqrt(s, g, s.t.sub(Term::of(1), square_of_a(s))));
     }},
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
       return scaled_by_rsqrt(s, g, s.t.sub(square_of_a(s), Term::of(1)));
     }},
    {TN_EXPR_ATANH,
     [](Site& s, const Term& g) { return s.t.div(g, s.t.sub(Term::of(1), square_of_a(s))); }},
    {TN_EXPR_ADD, [](Site&, const Term& g) { return g; }, [](Site&, const Term& g) { return g; }},
    {TN_EXPR_SUB, [](Site&, const Term& g) { return g; },
     [](Site& s, const Term& g) { return s.t.neg(g); }},
    {TN_EXPR_MUL, [](Site& s, const Term& g) { return s.t.mul(g, s.b()); },
     [](Site& s, const Term& g) { return s.t.mul(g, s.a()); }},
    {TN_EXPR_DIV, [](Site& s, const Term& g) { return s.t.div(g, s.b()); },
     [](Site& s, const Term& g) { return s.t.neg(s.t.div(s.t.mul(g, s.result()), s.b())); }},
    {TN_EXPR_POW, pow_to_base, pow_to_exponent},
    {TN_EXPR_MIN, [](Site& s, const Term& g) { return chosen(s, g, true, false); },
     [](Site& s, const Term& g) { return chosen(s, g, false, false); }},
    {TN_EXPR_MAX, [](Site& s, const Term& g) { return chosen(s, g, true, true); },
     [](Site& s, const Term& g) { return chosen(s, g, false, true); }},
    {TN_EXPR_MOD, [](Site&, const Term& g) { return g; },
     [](Site& s, const Term& g) {
       return s.t.neg(s.t.mul(g, s.t.unary("Floor", s.t.div(s.a(), s.b()))));
     }},
    {TN_EXPR_FMOD, [](Site&, const Term& g) { return g; },
     [](Site& s, const Term& g) {  // trunc(a/b) = (a - r)/b
       return s.t.neg(s.t.mul(g, s.t.div(s.t.sub(s.a(), s.result()), s.b())));
     }},
    {TN_EXPR_ATAN2,
     [](Site& s, const Term& g) {
       return s.t.div(s.t.mul(g, s.b()), s.t.add(square_of_a(s), s.t.mul(s.b(), s.b())));
     },
     [](Site& s, const Term& g) {
       return s.t.neg(s.t.div(s.t.mul(g, s.a()), s.t.add(square_of_a(s), s.t.mul(s.b(), s.b()))));
     }},
};

const Derivative* derivative_of(uint32_t op) {
  for (const Derivative& row : kDerivatives)
    if (row.op == op) return &row;
  return nullptr;  // a step: its derivative is 0
}

// Which parts of the program the wanted inputs reach.
std::vector<bool> reached(const tn_expr_program& program, Gradients& gradients) {
  std::vector<bool> on(program.count, false);
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& n = program.nodes[i];
    if (n.op == TN_EXPR_CONST) continue;
    if (n.op == TN_EXPR_INPUT) {
      on[i] = gradients.wanted(n.a);
      continue;
    }
    on[i] = on[n.a] || (n.op >= TN_EXPR_ADD && on[n.b]) || (n.op == TN_EXPR_SELECT && on[n.c]);
  }
  return on;
}

}  // namespace

Status pointwise_rule(Gradients& gradients) {
  Node node = gradients.of();
  const tn_expr_program* program = nullptr;
  TN_CHECK(services.op->expr(node.graph, node.id, &program));
  if (program->domain != TN_EXPR_DOMAIN_FLOAT) return {};
  Terms terms(gradients, node.output().dtype());
  Site site(terms, *program, node);
  std::vector<bool> on = reached(*program, gradients);
  std::vector<Term> cotangents(program->count, Term::of(0));
  cotangents.back() = Term::of(gradients.cotangent());
  auto give = [&](uint32_t operand, const Term& part) {
    cotangents[operand] = terms.add(cotangents[operand], part);
  };
  for (uint64_t i = program->count; i-- > 0;) {
    const tn_expr_node& n = program->nodes[i];
    Term g = cotangents[i];
    if (!on[i] || g.is(0)) continue;
    site.here = i;
    if (n.op == TN_EXPR_INPUT) {
      gradients.set(n.a, terms.value_of(g));
    } else if (n.op == TN_EXPR_SELECT) {
      if (on[n.b]) give(n.b, terms.select(site.a(), g, Term::of(0)));
      if (on[n.c]) give(n.c, terms.select(site.a(), Term::of(0), g));
    } else if (const Derivative* row = derivative_of(n.op)) {
      if (on[n.a]) give(n.a, row->to_a(site, g));
      if (row->to_b && on[n.b]) give(n.b, row->to_b(site, g));
    }
  }
  return {};
}

}  // namespace tenon::autodiff
