// SPDX-License-Identifier: Apache-2.0
// The parser of abi/expr.md: recursive descent, operators by precedence from the intrinsic rows.
#include "languages/expr.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>

#include "languages/cursor.hpp"
#include "languages/expr_intrinsics.hpp"

namespace tenon::host {
namespace {

using Kind = ExprTerm::Kind;
using Index = std::optional<uint32_t>;  // empty: error_ says why

constexpr size_t kMostText = 65536;
constexpr size_t kMostTerms = 4096;
constexpr uint32_t kMostDepth = 200;
constexpr uint32_t kMostInputs = 4096;

std::optional<uint32_t> input_position(std::string_view name) {
  if (name == "x") return 0;
  if (name == "y") return 1;
  if (name == "z") return 2;
  if (name.size() < 2 || name[0] != 'x' || (name[1] == '0' && name.size() > 2)) return {};
  uint32_t position = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), position);
  if (error != std::errc() || end != name.data() + name.size() || position >= kMostInputs)
    return {};
  return position;
}

std::optional<double> named_number(std::string_view name) {
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "pi") return std::numbers::pi;
  return {};
}

bool is_reserved(std::string_view name) {
  return name == "let" || name == "has" || name == "fold" || name == "n_inputs" ||
         named_number(name) || input_position(name);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(text) {}

  Parsed<std::vector<ExprTerm>> parse() {
    if (cursor_.size() > kMostText) fail("at most 65536 bytes", std::to_string(cursor_.size()));
    if (error_.column == 0 && parse_lets()) {
      const Index result = choice();
      if (result && !cursor_.at_end()) fail("an operator or the end", cursor_.describe());
      // The result is the last term, also when it is a bare `let` name.
      if (result && *result + 1 != terms_.size()) terms_.push_back(ExprTerm(terms_[*result]));
    }
    if (error_.column != 0) return error_;
    return std::move(terms_);
  }

 private:
  Index fail(std::string expected, std::string got) {
    if (error_.column == 0) error_ = {cursor_.column(), std::move(expected), std::move(got)};
    return {};
  }
  Index fail(std::string expected) { return fail(std::move(expected), cursor_.describe()); }
  Index fail_at(uint32_t column, std::string expected, std::string got) {
    if (error_.column == 0) error_ = {column, std::move(expected), std::move(got)};
    return {};
  }

  Index add(ExprTerm term) {
    if (terms_.size() == kMostTerms) return fail("at most 4096 terms");
    terms_.push_back(std::move(term));
    return static_cast<uint32_t>(terms_.size() - 1);
  }
  Index call(uint32_t column, uint32_t op, Index a, Index b = 0, Index c = 0) {
    if (!a || !b || !c) return {};
    return add({.kind = Kind::kCall, .column = column, .op = op, .args = {*a, *b, *c}});
  }

  bool parse_lets() {
    while (cursor_.peek_name() == "let") {
      cursor_.take_name();
      const uint32_t column = cursor_.column();
      const std::string name(cursor_.take_name());
      if (name.empty()) return fail("a name after let").has_value();
      if (is_reserved(name) || find_let(name))
        return fail_at(column, "a name that is free", "'" + name + "'").has_value();
      if (!cursor_.take("=")) return fail("'='").has_value();
      const Index value = choice();
      if (!value) return false;
      if (!cursor_.take(";")) return fail("';'").has_value();
      lets_.emplace_back(name, *value);
    }
    return true;
  }

  Index find_let(std::string_view name) const {
    const auto found = std::ranges::find(lets_, name, &std::pair<std::string, uint32_t>::first);
    return found == lets_.end() ? Index() : Index(found->second);
  }

  Index choice() {
    if (++depth_ > kMostDepth) return fail("at most 200 levels of nesting");
    const uint32_t column = cursor_.column();
    Index result = binary(kPrecedenceChoice + 1);
    if (result && cursor_.take("?")) {
      const Index yes = choice();
      if (yes && !cursor_.take(":")) return fail("':'");
      result = yes ? call(column, TN_EXPR_SELECT, result, yes, choice()) : yes;
    }
    --depth_;
    return result;
  }

  const Intrinsic* peek_operator() {
    const Intrinsic* best = nullptr;
    for (const Intrinsic& row : intrinsics()) {
      if (row.arity != 2 || row.symbol.empty() || !cursor_.starts_with(row.symbol)) continue;
      if (!best || row.symbol.size() > best->symbol.size()) best = &row;
    }
    return best;
  }

  Index binary(uint32_t least) {
    Index left = unary();
    while (left) {
      const Intrinsic* row = peek_operator();
      if (!row || row->precedence < least) break;
      const uint32_t column = cursor_.column();
      cursor_.take(row->symbol);
      left = call(column, row->op, left, binary(row->precedence + 1));
    }
    return left;
  }

  Index unary() {
    for (const Intrinsic& row : intrinsics()) {
      if (row.arity != 1 || row.symbol.empty() || !cursor_.starts_with(row.symbol)) continue;
      if (++depth_ > kMostDepth) return fail("at most 200 levels of nesting");
      const uint32_t column = cursor_.column();
      cursor_.take(row.symbol);
      const Index operand = unary();
      --depth_;
      return call(column, row.op, operand);
    }
    return primary();
  }

  Index primary() {
    const uint32_t column = cursor_.column();
    if (cursor_.take("(")) {
      const Index inner = choice();
      return inner && !cursor_.take(")") ? fail("')'") : inner;
    }
    if (cursor_.starts_with("\"")) return text_literal();
    if (cursor_.starts_with_digit()) return number();
    const std::string name(cursor_.take_name());
    if (name.empty()) return fail("a number, a name or '('");
    if (cursor_.starts_with("(")) return function(column, name);
    if (const auto value = named_number(name))
      return add({.kind = Kind::kNumber, .column = column, .number = *value});
    if (const auto position = input_position(name))
      return add({.kind = Kind::kInput, .column = column, .op = *position, .text = name});
    if (const Index value = find_let(name)) return value;
    if (name != "n_inputs" && is_reserved(name)) return fail("'(' after " + name);
    return add({.kind = Kind::kName, .column = column, .text = name});
  }

  Index text_literal() {
    const uint32_t column = cursor_.column();
    const std::optional<std::string_view> text = cursor_.take_quoted();
    if (!text) return fail("a closing '\"'", "end of text");
    return add({.kind = Kind::kText, .column = column, .text = std::string(*text)});
  }

  Index number() {
    const uint32_t column = cursor_.column();
    const std::string_view digits = cursor_.take_number();
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
      return fail_at(column, "a number that double holds", "'" + std::string(digits) + "'");
    return add({.kind = Kind::kNumber, .column = column, .number = value});
  }

  Index function(uint32_t column, const std::string& name) {
    if (name == "has" || name == "fold") return special(column, name);
    const Intrinsic* row = find_intrinsic(name);
    if (!row) return fail_at(column, "a function of abi/expr.md", "'" + name + "'");
    cursor_.take("(");
    Index args[3] = {0, 0, 0};
    for (uint32_t i = 0; i < row->arity; ++i) {
      if (i > 0 && !cursor_.take(",")) return wrong_count(*row, i);
      args[i] = choice();
      if (!args[i]) return {};
    }
    if (!cursor_.take(")")) return wrong_count(*row, row->arity);
    return call(column, row->op, args[0], args[1], args[2]);
  }

  Index wrong_count(const Intrinsic& row, uint32_t seen) {
    return fail(seen < row.arity ? "',' (" + std::string(row.name) + " takes " +
                                       std::to_string(row.arity) + " arguments)"
                                 : "')'");
  }

  Index special(uint32_t column, const std::string& name) {
    cursor_.take("(");
    const uint32_t inner = cursor_.column();
    const std::string argument(cursor_.take_name());
    ExprTerm term{.kind = Kind::kHas, .column = column, .op = UINT32_MAX, .text = argument};
    if (name == "fold") {
      const Intrinsic* row = find_intrinsic(std::string_view(argument));
      if (!row || !(row->traits & kFoldable))
        return fail_at(inner, "add, mul, min, max, and, or, xor, bitand, bitor or bitxor",
                       "'" + argument + "'");
      term.kind = Kind::kFold;
      term.op = row->op;
    } else if (const auto position = input_position(argument)) {
      term.op = *position;
    } else if (argument.empty() || is_reserved(argument) || find_let(argument)) {
      return fail_at(inner, "an input or an attribute", "'" + argument + "'");
    }
    return cursor_.take(")") ? add(std::move(term)) : fail("')'");
  }

  TextCursor cursor_;
  std::vector<ExprTerm> terms_;
  std::vector<std::pair<std::string, uint32_t>> lets_;
  ParseError error_;  // column 0: none yet
  uint32_t depth_ = 0;
};

}  // namespace

Parsed<Expr> Expr::parse(std::string_view text) {
  Parsed<std::vector<ExprTerm>> terms = Parser(text).parse();
  if (!terms) return terms.error();
  Expr expr;
  expr.terms_ = std::move(*terms);
  return expr;
}

std::vector<std::string> Expr::attributes() const {
  std::vector<std::string> names;
  for (const ExprTerm& term : terms_) {
    const bool asks =
        term.kind == Kind::kName || (term.kind == Kind::kHas && term.op == UINT32_MAX);
    if (!asks || term.text == "n_inputs" || std::ranges::find(names, term.text) != names.end())
      continue;
    names.push_back(term.text);
  }
  return names;
}

std::optional<std::vector<bool>> Expr::inputs() const {
  std::vector<bool> needed, asked;
  bool has_choice = false;
  for (const ExprTerm& term : terms_) {
    const bool is_any =
        term.kind == Kind::kFold || (term.kind == Kind::kName && term.text == "n_inputs");
    if (is_any) return std::nullopt;
    has_choice = has_choice || (term.kind == Kind::kCall && term.op == TN_EXPR_SELECT);
    const bool is_asked = term.kind == Kind::kHas && term.op != UINT32_MAX;
    if (term.kind != Kind::kInput && !is_asked) continue;
    if (term.op >= needed.size()) {
      needed.resize(term.op + 1);
      asked.resize(term.op + 1);
    }
    (is_asked ? asked : needed)[term.op] = true;
  }
  // What is not chosen may be absent: binding says so where it is not.
  for (size_t i = 0; i < needed.size(); ++i)
    needed[i] = needed[i] && !asked[i] && !has_choice;
  return needed;
}

}  // namespace tenon::host
