// SPDX-License-Identifier: Apache-2.0
#include "pointwise_rule.hpp"

#include "derivatives.hpp"
#include "kinks.hpp"

namespace tenon::autodiff {
namespace {

// Which parts of the program the wanted inputs reach.
std::vector<bool> reached(const tn_expr_program& program, const std::vector<bool>& wanted) {
  std::vector<bool> on(program.count, false);
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& n = program.nodes[i];
    if (n.op == TN_EXPR_CONST) continue;
    if (n.op == TN_EXPR_INPUT) {
      on[i] = wanted[n.a];
      continue;
    }
    on[i] = on[n.a] || (n.op >= TN_EXPR_ADD && on[n.b]) || (n.op == TN_EXPR_SELECT && on[n.c]);
  }
  return on;
}

bool chooses(uint32_t op) {
  return op == TN_EXPR_MIN || op == TN_EXPR_MAX || op == TN_EXPR_SELECT;
}

// Parts whose slopes are finite whatever the inputs are: 0 for their result is 0 for their inputs.
std::vector<bool> tame(const tn_expr_program& program) {
  std::vector<bool> is_tame(program.count, false);
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& n = program.nodes[i];
    bool a = is_tame[n.a], b = n.op < TN_EXPR_ADD || is_tame[n.b];
    bool is_scaled =
        (n.op == TN_EXPR_MUL && program.nodes[n.a].op == TN_EXPR_CONST) ||
        ((n.op == TN_EXPR_MUL || n.op == TN_EXPR_DIV) && program.nodes[n.b].op == TN_EXPR_CONST);
    bool is_sum = n.op == TN_EXPR_NEG || n.op == TN_EXPR_ABS || n.op == TN_EXPR_ADD ||
                  n.op == TN_EXPR_SUB || n.op == TN_EXPR_MIN || n.op == TN_EXPR_MAX;
    bool is_choice = n.op == TN_EXPR_SELECT && is_tame[n.b] && is_tame[n.c];
    is_tame[i] = n.op < TN_EXPR_NEG || is_choice || ((is_sum || is_scaled) && a && b);
  }
  return is_tame;
}

// Reverse accumulation over one program.
class Reverse {
 public:
  Reverse(const tn_expr_program& program, const std::vector<bool>& wanted, Site& site)
      : program_(program), site_(site), on_(reached(program, wanted)), tame_(tame(program)) {}

  // What goes to each input, given what came for a part.
  std::vector<Term> run(uint64_t root, const Term& g) {
    std::vector<Term> inputs(program_.input_count, Term::of(0));
    std::vector<Term> cotangents(root + 1, Term::of(0));
    cotangents[root] = g;
    for (uint64_t i = root + 1; i-- > 0;) {
      const tn_expr_node& n = program_.nodes[i];
      if (!on_[i] || cotangents[i].is(0)) continue;
      site_.here = i;
      if (n.op == TN_EXPR_INPUT) {
        inputs[n.a] = site_.t.add(inputs[n.a], cotangents[i]);
      } else if (chooses(n.op)) {
        const bool is_select = n.op == TN_EXPR_SELECT;
        choose(i, is_select ? n.b : n.a, true, cotangents, inputs);
        choose(i, is_select ? n.c : n.b, false, cotangents, inputs);
      } else if (const Derivative* row = derivative_of(n.op)) {
        if (on_[n.a]) give(cotangents, n.a, row->to_a(site_, cotangents[i]));
        if (row->to_b && on_[n.b]) give(cotangents, n.b, row->to_b(site_, cotangents[i]));
      }
    }
    return inputs;
  }

 private:
  static constexpr int kMostNested = 4;  // a shared part is gone through once for each choice above

  void give(std::vector<Term>& cotangents, uint64_t to, const Term& part) {
    cotangents[to] = site_.t.add(cotangents[to], part);
  }

  // To an operand that may be chosen. Where it is not, its slope may be infinite (exp(x) where x
  // was chosen), and 0 times that is no number: so it is what comes out behind it that is cut.
  void choose(uint64_t at,
              uint64_t operand,
              bool is_first,
              std::vector<Term>& cotangents,
              std::vector<Term>& inputs) {
    if (!on_[operand]) return;
    site_.here = at;
    const Term g = cotangents[at];
    if (tame_[operand] || depth_ == kMostNested)
      return give(cotangents, operand, share(at, is_first, g));
    ++depth_;
    std::vector<Term> parts = run(operand, g);
    --depth_;
    site_.here = at;
    for (size_t i = 0; i < parts.size(); ++i)
      if (!parts[i].is(0)) inputs[i] = site_.t.add(inputs[i], share(at, is_first, parts[i]));
  }

  // The chosen operand takes all. Equal ones share, constants too: the mean of the slopes on both
  // sides. Such means add up, so a sum of kinks that is smooth, as softplus is, keeps its slope.
  Term share(uint64_t at, bool is_first, const Term& all) {
    Terms& t = site_.t;
    const tn_expr_node& n = program_.nodes[at];
    const Term zero = Term::of(0);
    if (n.op == TN_EXPR_SELECT)
      return is_first ? t.select(site_.a(), all, zero) : t.select(site_.a(), zero, all);
    Term own = is_first ? site_.a() : site_.b(), other = is_first ? site_.b() : site_.a();
    Term wins = t.binary(n.op == TN_EXPR_MAX ? "Greater" : "Less", own, other, true);
    Term ties = t.binary("Equal", own, other, true);
    return t.select(wins, all, t.select(ties, t.mul(all, Term::of(0.5)), zero));
  }

  const tn_expr_program& program_;
  Site& site_;
  std::vector<bool> on_, tame_;
  int depth_ = 0;
};

// The slope by one input as the mean of those on both sides of kinks, in two expressions without
// any: so its own slopes, of every order, are such means too (kinks.hpp).
Term mean_of_sides(const tn_expr_program& program,
                   const std::array<ExprNodes, 2>& sides,
                   uint64_t input,
                   Terms& terms,
                   Gradients& gradients) {
  Term half = terms.mul(Term::of(gradients.cotangent()), Term::of(0.5)), sum = Term::of(0);
  std::vector<bool> wanted(program.input_count, false);
  wanted[input] = true;
  for (const ExprNodes& nodes : sides) {
    tn_expr_program side = program;
    side.nodes = nodes.data();
    side.count = nodes.size();
    Site site(terms, side, gradients, false);
    Reverse reverse(side, wanted, site);
    sum = terms.add(sum, reverse.run(side.count - 1, half)[input]);
  }
  return sum;
}

}  // namespace

Status pointwise_rule(Gradients& gradients) {
  Node node = gradients.of();
  const tn_expr_program* program = nullptr;
  TN_CHECK(services.op->expr(node.graph, node.id, &program));
  if (program->domain != TN_EXPR_DOMAIN_FLOAT) return {};
  Terms terms(gradients, node.output().dtype());
  std::vector<bool> wanted(program->input_count);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = gradients.wanted(i);
  std::vector<Term> parts(wanted.size(), Term::of(0));
  if (bends_at_kinks(*program))
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      auto sides = beside_kinks(*program, i);
      if (!sides) continue;
      parts[i] = mean_of_sides(*program, *sides, i, terms, gradients);
      wanted[i] = false;
    }
  Site site(terms, *program, gradients, true);
  Reverse reverse(*program, wanted, site);
  std::vector<Term> rest = reverse.run(program->count - 1, Term::of(gradients.cotangent()));
  for (size_t i = 0; i < parts.size(); ++i)
    if (Term part = terms.add(parts[i], rest[i]); !part.is(0))
      gradients.set(i, terms.value_of(part));
  return {};
}

}  // namespace tenon::autodiff
