// SPDX-License-Identifier: Apache-2.0
// A bound program as canonical text, and its value for one element.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "tenon/cat.hpp"

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

// Node by node over a block of elements, so that an intrinsic is looked up once a block.
constexpr uint64_t kBlock = 256;

template <class Number, class Constant, class Step>
void run(const tn_expr_program& program,
         std::span<const Number* const> inputs,
         std::span<Number> out,
         Constant constant,
         Step step) {
  const uint64_t block = std::min<uint64_t>(kBlock, out.size());
  std::vector<Number> values(program.count * block);
  std::vector<const Number*> of(program.count);
  for (uint64_t begin = 0; begin < out.size(); begin += block) {
    const uint64_t n = std::min<uint64_t>(block, out.size() - begin);
    for (uint64_t i = 0; i < program.count; ++i) {
      const tn_expr_node& node = program.nodes[i];
      Number* made = &values[i * block];
      of[i] = node.op == TN_EXPR_INPUT ? inputs[node.a] + begin : made;
      if (node.op == TN_EXPR_CONST) std::fill_n(made, n, constant(node.imm));
      const Intrinsic* row = find_intrinsic(node.op);
      for (uint64_t k = 0; row && k < n; ++k)
        made[k] = step(*row, of[node.a][k], of[node.b][k], of[node.c][k]);
    }
    std::copy_n(of[program.count - 1], n, out.begin() + static_cast<ptrdiff_t>(begin));
  }
}

bool has_domain(const Intrinsic& row, uint32_t domain) {
  return domain == TN_EXPR_DOMAIN_FLOAT ? row.real != nullptr : row.integer != nullptr;
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

std::string why_malformed(const tn_expr_program& program, std::span<const void* const> inputs) {
  if (program.count == 0 || !program.nodes) return "expected at least one node";
  const bool is_real = program.domain == TN_EXPR_DOMAIN_FLOAT;
  if (program.domain > TN_EXPR_DOMAIN_UINT || (!is_real && (program.bits < 1 || program.bits > 64)))
    return "expected domain FLOAT, or INT or UINT of 1 to 64 bits";
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& node = program.nodes[i];
    const std::string at = "node " + std::to_string(i) + ": ";
    if (node.op == TN_EXPR_CONST) {
      if (is_constant_of({program.domain, program.bits}, node.imm)) continue;
      return cat(at, "expected a whole number that its type holds, got ", node.imm);
    }
    if (node.op == TN_EXPR_INPUT) {
      if (node.a < inputs.size() && inputs[node.a]) continue;
      return at + "it reads input " + std::to_string(node.a) + ", which is not there";
    }
    const Intrinsic* row = find_intrinsic(node.op);
    if (!row || !has_domain(*row, program.domain))
      return at + "no intrinsic " + std::to_string(node.op) + " in its domain";
    const uint32_t operands[3] = {node.a, node.b, node.c};
    for (uint32_t k = 0; k < 3; ++k)
      if (operands[k] >= (k < row->arity ? i : 1)) return at + "expected operands before it";
  }
  return {};
}

void evaluate(const tn_expr_program& program,
              std::span<const double* const> inputs,
              std::span<double> out) {
  run(
      program, inputs, out, [](double imm) { return imm; },
      [](const Intrinsic& row, double a, double b, double c) { return row.real(a, b, c); });
}

void evaluate(const tn_expr_program& program,
              std::span<const int64_t* const> inputs,
              std::span<int64_t> out) {
  const ExprType type{program.domain, program.bits};
  const auto constant = [](double imm) { return static_cast<int64_t>(to_integer(imm)); };
  run(program, inputs, out, constant,
      [type](const Intrinsic& row, int64_t a, int64_t b, int64_t c) {
        const auto word = [](int64_t value) { return static_cast<uint64_t>(value); };
        return static_cast<int64_t>(wrap(row.integer(word(a), word(b), word(c), type), type));
      });
}

}  // namespace tenon::host
