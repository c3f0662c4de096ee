// SPDX-License-Identifier: Apache-2.0
// A bound program as canonical text, and its value for one element.
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "languages/expr.hpp"
#include "languages/expr_intrinsics.hpp"

namespace tenon::host {
namespace {

constexpr uint32_t kDeepest = 64;  // nesting in printed text before a `let` cuts it

constexpr const char* kFirst[] = {"x", "y", "z"};

struct Printed {
  std::string text;
  uint32_t precedence = kPrecedencePrimary;
  uint32_t depth = 0;
};

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return std::string(buffer.data(), end);
}

Printed leaf(const tn_expr_node& node) {
  if (node.op == TN_EXPR_CONST)
    return {number_text(node.imm), std::signbit(node.imm) ? kPrecedenceUnary : kPrecedencePrimary};
  return {node.a < 3 ? kFirst[node.a] : "x" + std::to_string(node.a)};
}

std::string in_place(Printed part, uint32_t least) {
  return part.precedence < least ? "(" + part.text + ")" : std::move(part.text);
}

Printed operation(const Intrinsic& row, std::array<Printed, 3> args) {
  uint32_t depth = 0;
  for (const Printed& part : args)
    depth = std::max(depth, part.depth + 1);
  const uint32_t own = row.precedence;
  if (row.op == TN_EXPR_SELECT)
    return {in_place(std::move(args[0]), own + 1) + " ? " + in_place(std::move(args[1]), own) +
                " : " + in_place(std::move(args[2]), own),
            own, depth};
  if (row.symbol.empty()) {
    std::string text = std::string(row.name) + "(";
    for (uint32_t i = 0; i < row.arity; ++i)
      text += (i > 0 ? ", " : "") + args[i].text;
    return {text + ")", kPrecedencePrimary, depth};
  }
  if (row.arity == 1)
    return {std::string(row.symbol) + in_place(std::move(args[0]), own), own, depth};
  const bool tight = row.op == TN_EXPR_MUL || row.op == TN_EXPR_DIV;
  std::string text = in_place(std::move(args[0]), own);
  text += tight ? std::string(row.symbol) : " " + std::string(row.symbol) + " ";
  return {text + in_place(std::move(args[1]), own + 1), own, depth};
}

std::vector<uint32_t> count_uses(const std::vector<tn_expr_node>& nodes) {
  std::vector<uint32_t> uses(nodes.size());
  for (const tn_expr_node& node : nodes) {
    const Intrinsic* row = find_intrinsic(node.op);
    const uint32_t operands[3] = {node.a, node.b, node.c};
    for (uint32_t i = 0; row && i < row->arity; ++i)
      ++uses[operands[i]];
  }
  return uses;
}

template <class Value, class Step>
Value run(const tn_expr_program& program, std::span<const Value> inputs, Step step) {
  std::array<Value, 64> few;
  std::vector<Value> many(program.count > few.size() ? program.count : 0);
  Value* const values = many.empty() ? few.data() : many.data();
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& node = program.nodes[i];
    values[i] = node.op == TN_EXPR_INPUT ? inputs[node.a] : step(node, values);
  }
  return values[program.count - 1];
}

}  // namespace

std::string ExprProgram::text() const {
  const std::vector<uint32_t> uses = count_uses(nodes_);
  std::vector<Printed> printed(nodes_.size());
  std::string lets;
  uint32_t n_lets = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const tn_expr_node& node = nodes_[i];
    const Intrinsic* row = find_intrinsic(node.op);
    if (!row) {
      printed[i] = leaf(node);
      continue;
    }
    const uint32_t operands[3] = {node.a, node.b, node.c};
    std::array<Printed, 3> args;
    for (uint32_t k = 0; k < row->arity; ++k) {
      // What is used again is a leaf or a `let` name, so it is short.
      const bool last = uses[operands[k]] == 1;
      args[k] = last ? std::move(printed[operands[k]]) : printed[operands[k]];
    }
    printed[i] = operation(*row, std::move(args));
    if (uses[i] > 1 || (uses[i] == 1 && printed[i].depth >= kDeepest)) {
      const std::string name = "t" + std::to_string(n_lets++);
      lets += "let " + name + " = " + printed[i].text + "; ";
      printed[i] = {name};
    }
  }
  return lets + printed.back().text;
}

double evaluate(const tn_expr_program& program, std::span<const double> inputs) {
  return run(program, inputs, [](const tn_expr_node& node, const double* values) {
    if (node.op == TN_EXPR_CONST) return node.imm;
    const Intrinsic* row = find_intrinsic(node.op);
    if (!row || !row->real) return std::numeric_limits<double>::quiet_NaN();
    return row->real(values[node.a], values[node.b], values[node.c]);
  });
}

int64_t evaluate_integer(const tn_expr_program& program, std::span<const int64_t> inputs) {
  const ExprType type{program.domain, program.bits};
  return run(program, inputs, [type](const tn_expr_node& node, const int64_t* values) -> int64_t {
    if (node.op == TN_EXPR_CONST)
      return node.imm < 0 ? static_cast<int64_t>(node.imm)
                          : static_cast<int64_t>(static_cast<uint64_t>(node.imm));
    const Intrinsic* row = find_intrinsic(node.op);
    if (!row || !row->integer) return 0;
    const auto word = [&](uint32_t at) { return static_cast<uint64_t>(values[at]); };
    const uint64_t value = row->integer(word(node.a), word(node.b), word(node.c), type);
    return static_cast<int64_t>(wrap(value, type));
  });
}

}  // namespace tenon::host
