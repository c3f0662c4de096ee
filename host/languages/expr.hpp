// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scalar expressions of pointwise operators (abi/expr.md): text -> Expr, once per operator row;
// Expr + one node's inputs and attributes -> ExprProgram, the flat form that plugins read.
// Values only, no shared state: any thread.
//
//   Parsed<Expr> gelu = Expr::parse("0.5*x*(1 + erf(x*0.7071067811865475))");
//   Parsed<ExprProgram> program = gelu->bind({.present = {true}});
//   const double x[] = {1, 2};
//   double y[2];
//   evaluate(program->view(), std::array{&x[0]}, y);

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/expr.h"

#include "languages/parse_error.hpp"

namespace tenon::host {

struct ExprType {
  uint32_t domain = TN_EXPR_DOMAIN_FLOAT;
  uint32_t bits = 0;  // 1..64 in the integer domains
};

// monostate: the node has no such attribute, or it is neither a number nor text.
using ExprAttribute = std::variant<std::monostate, int64_t, double, std::string>;

struct ExprBinding {
  std::vector<bool> present;  // one per input of the node; false: an absent optional one
  ExprType type = {};
  std::function<ExprAttribute(std::string_view name)> attribute = {};
};

class ExprProgram {
 public:
  ExprProgram(std::vector<tn_expr_node> nodes, uint32_t input_count, ExprType type)
      : nodes_(std::move(nodes)), input_count_(input_count), type_(type) {}

  tn_expr_program view() const {  // lives as long as this program stays where it is
    return {nodes_.data(), nodes_.size(), input_count_, type_.domain, type_.bits, 0};
  }
  const std::vector<tn_expr_node>& nodes() const { return nodes_; }
  std::string text() const;  // canonical: parsing and binding it gives the same program

 private:
  std::vector<tn_expr_node> nodes_;
  uint32_t input_count_;
  ExprType type_;
};

// One term of the syntax tree. Operands are earlier terms, so a `let` is shared, not copied.
struct ExprTerm {
  enum class Kind : uint8_t { kNumber, kText, kName, kInput, kHas, kFold, kCall };
  Kind kind = Kind::kNumber;
  uint32_t column = 0;
  uint32_t op = 0;  // kCall, kFold: TN_EXPR_*; kInput: its position
  uint32_t args[3] = {};
  double number = 0;
  std::string text = {};
};

class Expr {
 public:
  static Parsed<Expr> parse(std::string_view text);

  // Resolves attributes, absent inputs and choices between texts; folds constants and shares
  // equal parts. Only what is chosen has to bind.
  Parsed<ExprProgram> bind(const ExprBinding& binding) const;

  const std::vector<ExprTerm>& terms() const { return terms_; }  // the last is the result
  std::vector<std::string> attributes() const;  // names it may ask for, in order of first use
  // By position: whether it needs the input, or asks has() first. nullopt: any number will do
  // (fold, n_inputs).
  std::optional<std::vector<bool>> inputs() const;

 private:
  std::vector<ExprTerm> terms_;
};

// What keeps a program that somebody hands in from being evaluated; empty: nothing.
std::string why_malformed(const tn_expr_program& program, std::span<const void* const> inputs);

// What a program means, for as many elements as `out` has: the oracle. Inputs by position, each as
// long as `out`; those that it does not read may be null. Integer domains: UINT reads and gives the
// bits of uint64.
void evaluate(const tn_expr_program& program,
              std::span<const double* const> inputs,
              std::span<double> out);
void evaluate(const tn_expr_program& program,
              std::span<const int64_t* const> inputs,
              std::span<int64_t> out);

}  // namespace tenon::host
