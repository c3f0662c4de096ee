// SPDX-License-Identifier: Apache-2.0
// Syntax tree + one node -> flat program: resolve names, choose branches, fold, share, renumber.
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "tenon/cat.hpp"

#include "languages/expr.hpp"
#include "languages/expr_intrinsics.hpp"

namespace tenon::host {
namespace {

using Kind = ExprTerm::Kind;
using Index = std::optional<uint32_t>;  // of a node; empty: error_ says why

constexpr double kMostExact = 9007199254740992.0;  // 2^53: integers below are exact in double

class Binder {
 public:
  Binder(const std::vector<ExprTerm>& terms, const ExprBinding& binding)
      : terms_(terms), binding_(binding), type_(binding.type), lowered_(terms.size()) {}

  Parsed<ExprProgram> bind() {
    const Index result = lower(static_cast<uint32_t>(terms_.size() - 1));
    if (!result) return error_;
    return ExprProgram(reachable(*result), static_cast<uint32_t>(binding_.present.size()), type_);
  }

 private:
  bool is_real() const { return type_.domain == TN_EXPR_DOMAIN_FLOAT; }

  Index fail(const ExprTerm& term, std::string expected, std::string got) {
    error_ = {term.column, std::move(expected), std::move(got)};
    return {};
  }

  Index lower(uint32_t at) {
    if (!lowered_[at]) lowered_[at] = lower_new(terms_[at]);
    return lowered_[at];
  }

  Index lower_new(const ExprTerm& term) {
    switch (term.kind) {
      case Kind::kNumber:
        return constant(term, term.number);
      case Kind::kText:
        return fail(term, "a number", "text; compare it with == or !=");
      case Kind::kName:
        return attribute(term);
      case Kind::kInput:
        return input(term, term.op);
      case Kind::kHas:
        return emit(TN_EXPR_CONST, 0, 0, 0, has(term));
      case Kind::kFold:
        return fold(term);
      case Kind::kCall:
        return call(term);
    }
    return {};
  }

  Index constant(const ExprTerm& term, double value) {
    if (!is_constant_of(type_, value))
      return fail(term,
                  "a constant of the integer type, " + std::to_string(type_.bits) +
                      (type_.domain == TN_EXPR_DOMAIN_INT ? " bits signed" : " bits unsigned"),
                  short_text(value));
    return emit(TN_EXPR_CONST, 0, 0, 0, value);
  }

  ExprAttribute look_up(const std::string& name) const {
    if (name == "n_inputs") return static_cast<int64_t>(binding_.present.size());
    return binding_.attribute ? binding_.attribute(name) : ExprAttribute();
  }

  Index attribute(const ExprTerm& term) {
    const ExprAttribute value = look_up(term.text);
    if (const double* real = std::get_if<double>(&value)) return constant(term, *real);
    if (const int64_t* integer = std::get_if<int64_t>(&value))
      return constant(term, static_cast<double>(*integer));
    if (std::holds_alternative<std::string>(value))
      return fail(term, "a number", "text attribute '" + term.text + "'; compare it with == or !=");
    return fail(term, "an input or an attribute of the node", "'" + term.text + "'");
  }

  bool is_present(uint32_t position) const {
    return position < binding_.present.size() && binding_.present[position];
  }
  Index input(const ExprTerm& term, uint32_t position) {
    if (is_present(position)) return emit(TN_EXPR_INPUT, position, 0, 0, 0);
    return fail(term,
                "input " + std::to_string(position) + " (optional ones are tested with has())",
                "'" + term.text + "', absent");
  }
  bool has(const ExprTerm& term) const {
    return term.op == UINT32_MAX ? !std::holds_alternative<std::monostate>(look_up(term.text))
                                 : is_present(term.op);
  }

  Index fold(const ExprTerm& term) {
    if (!supports(*find_intrinsic(term.op))) return unsupported(term);
    Index result;
    for (uint32_t i = 0; i < binding_.present.size(); ++i) {
      if (!binding_.present[i]) continue;
      const uint32_t next = emit(TN_EXPR_INPUT, i, 0, 0, 0);
      result = result ? emit(term.op, *result, next, 0, 0) : next;
    }
    return result ? result : fail(term, "at least one input to fold over", "none");
  }

  // Text is there for choices only, so it exists while binding and never in a program.
  std::optional<std::string> text_of(const ExprTerm& term) const {
    if (term.kind == Kind::kText) return term.text;
    if (term.kind != Kind::kName) return {};
    const ExprAttribute value = look_up(term.text);
    const std::string* text = std::get_if<std::string>(&value);
    return text ? std::optional(*text) : std::nullopt;
  }

  Index call(const ExprTerm& term) {
    const Intrinsic& row = *find_intrinsic(term.op);
    if (term.op == TN_EXPR_EQ || term.op == TN_EXPR_NE) {
      const ExprTerm& left = terms_[term.args[0]];
      const ExprTerm& right = terms_[term.args[1]];
      const auto a = text_of(left), b = text_of(right);
      if (a && b) return emit(TN_EXPR_CONST, 0, 0, 0, (*a == *b) == (term.op == TN_EXPR_EQ));
      if (a || b) return fail(a ? right : left, "text to compare with text", "something else");
    }
    if (term.op == TN_EXPR_SELECT) return choose(term);
    if (term.op == TN_EXPR_AND || term.op == TN_EXPR_OR) return logic(term);
    if (!supports(row)) return unsupported(term);
    const ExprTerm& first = terms_[term.args[0]];
    // So that the lowest value of an integer type can be written: 128 alone does not fit int8.
    const bool literal = term.op == TN_EXPR_NEG && first.kind == Kind::kNumber;
    if (literal && type_.domain == TN_EXPR_DOMAIN_INT) return constant(first, -first.number);
    uint32_t args[3] = {};
    for (uint32_t i = 0; i < row.arity; ++i) {
      const Index arg = lower(term.args[i]);
      if (!arg) return {};
      args[i] = *arg;
    }
    return emit(term.op, args[0], args[1], args[2], 0);
  }

  bool supports(const Intrinsic& row) const {
    return is_real() ? row.real != nullptr : row.integer != nullptr;
  }
  Index unsupported(const ExprTerm& term) {
    return fail(term, is_real() ? "a function of floats" : "a function of integers",
                "'" + std::string(find_intrinsic(term.op)->name) + "'");
  }

  const double* known(uint32_t node) const {
    return nodes_[node].op == TN_EXPR_CONST ? &nodes_[node].imm : nullptr;
  }

  Index choose(const ExprTerm& term) {
    const Index condition = lower(term.args[0]);
    if (!condition) return {};
    if (const double* value = known(*condition)) return lower(term.args[*value != 0 ? 1 : 2]);
    const Index yes = lower(term.args[1]);
    const Index no = yes ? lower(term.args[2]) : yes;
    return no ? emit(TN_EXPR_SELECT, *condition, *yes, *no, 0) : no;
  }

  // A known left side decides before the right side is looked at: has(y) && y > 0.
  Index logic(const ExprTerm& term) {
    const Index left = lower(term.args[0]);
    if (!left) return {};
    const double* value = known(*left);
    const bool decided = value && (*value != 0) == (term.op == TN_EXPR_OR);
    if (decided) return emit(TN_EXPR_CONST, 0, 0, 0, term.op == TN_EXPR_OR);
    const Index right = lower(term.args[1]);
    if (!right || !value) return right ? emit(term.op, *left, *right, 0, 0) : right;
    const Intrinsic* row = find_intrinsic(nodes_[*right].op);
    if (row && row->traits & kBoolean) return right;
    return emit(TN_EXPR_NE, *right, emit(TN_EXPR_CONST, 0, 0, 0, 0), 0, 0);
  }

  std::optional<double> folded(const Intrinsic& row, uint32_t a, uint32_t b, uint32_t c) const {
    const uint32_t operands[3] = {a, b, c};
    double imm[3] = {};
    for (uint32_t i = 0; i < row.arity; ++i) {
      if (!known(operands[i])) return {};
      imm[i] = *known(operands[i]);
    }
    if (is_real()) return row.real(imm[0], imm[1], imm[2]);
    const uint64_t bits =
        wrap(row.integer(to_integer(imm[0]), to_integer(imm[1]), to_integer(imm[2]), type_), type_);
    const double value = type_.domain == TN_EXPR_DOMAIN_INT
                             ? static_cast<double>(static_cast<int64_t>(bits))
                             : static_cast<double>(bits);
    if (std::fabs(value) > kMostExact) return {};  // stays an operation: imm cannot hold it
    return value;
  }

  // Only what is exact for every value, NaN and -0 included: x*1, x/1, x-0, one-armed choices.
  Index simplified(uint32_t op, uint32_t a, uint32_t b, uint32_t c) const {
    const auto is = [&](uint32_t node, double value) {
      return known(node) && *known(node) == value && !std::signbit(*known(node));
    };
    if ((op == TN_EXPR_MUL || op == TN_EXPR_DIV) && is(b, 1)) return a;
    if (op == TN_EXPR_MUL && is(a, 1)) return b;
    if (op == TN_EXPR_SUB && is(b, 0)) return a;
    if (op == TN_EXPR_SELECT && b == c) return b;
    return {};
  }

  uint32_t emit(uint32_t op, uint32_t a, uint32_t b, uint32_t c, double imm) {
    const Intrinsic* row = find_intrinsic(op);
    if (row) {
      if (const auto value = folded(*row, a, b, c)) return emit(TN_EXPR_CONST, 0, 0, 0, *value);
      if (const Index same = simplified(op, a, b, c)) return *same;
    }
    if (std::isnan(imm)) imm = std::numeric_limits<double>::quiet_NaN();
    const auto key = [&](uint32_t p, uint32_t q) {
      return std::tuple(op, p, q, c, std::bit_cast<uint64_t>(imm));
    };
    auto found = shared_.find(key(a, b));
    if (found == shared_.end() && row && row->traits & kCommutes) found = shared_.find(key(b, a));
    if (found != shared_.end()) return found->second;
    nodes_.push_back({op, a, b, c, imm});
    return shared_[key(a, b)] = static_cast<uint32_t>(nodes_.size() - 1);
  }

  // Depth first from the result, operands from left to right: drops what is not read, and gives
  // equal expressions equal programs however they were written.
  std::vector<tn_expr_node> reachable(uint32_t result) const {
    std::vector<tn_expr_node> kept;
    constexpr uint32_t not_yet = UINT32_MAX;
    std::vector<uint32_t> moved(nodes_.size(), not_yet);
    std::vector<uint32_t> open = {result};
    while (!open.empty()) {
      const uint32_t at = open.back();
      tn_expr_node node = nodes_[at];
      const Intrinsic* row = find_intrinsic(node.op);
      uint32_t* const operands[3] = {&node.a, &node.b, &node.c};
      const size_t before = open.size();
      for (uint32_t i = row ? row->arity : 0; i-- > 0;)
        if (moved[*operands[i]] == not_yet) open.push_back(*operands[i]);
      if (open.size() != before) continue;
      open.pop_back();
      if (moved[at] != not_yet) continue;
      for (uint32_t i = 0; row && i < row->arity; ++i)
        *operands[i] = moved[*operands[i]];
      moved[at] = static_cast<uint32_t>(kept.size());
      kept.push_back(node);
    }
    return kept;
  }

  const std::vector<ExprTerm>& terms_;
  const ExprBinding& binding_;
  ExprType type_;
  std::vector<Index> lowered_;
  std::vector<tn_expr_node> nodes_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint64_t>, uint32_t> shared_;
  ParseError error_;
};

}  // namespace

Parsed<ExprProgram> Expr::bind(const ExprBinding& binding) const {
  return Binder(terms_, binding).bind();
}

}  // namespace tenon::host
