// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scalar programs that a backend makes itself, in the form of those that operator rows give: of the
// nodes of a group, or for an operator that has none.

#include <algorithm>
#include <cmath>
#include <span>

#include "tenon/sdk/backend/graph.hpp"

namespace tenon::backend {

class ProgramBuilder {
 public:
  // rounds: constants are kept as float, for who computes in it.
  explicit ProgramBuilder(bool rounds = false) : rounds_(rounds) {}

  // The index of such a node. One that is there already is not added twice: a function and its
  // derivative have terms in common.
  uint32_t emit(uint32_t op, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0, double imm = 0) {
    if (rounds_) imm = static_cast<double>(static_cast<float>(imm));
    auto same = std::find_if(nodes_.begin(), nodes_.end(), [&](const tn_expr_node& e) {
      bool is_same_number = e.imm == imm && std::signbit(e.imm) == std::signbit(imm);
      return e.op == op && e.a == a && e.b == b && e.c == c && is_same_number;
    });
    if (same != nodes_.end()) return static_cast<uint32_t>(same - nodes_.begin());
    nodes_.push_back({op, a, b, c, imm});
    return static_cast<uint32_t>(nodes_.size()) - 1;
  }
  uint32_t input(uint32_t i) { return emit(TN_EXPR_INPUT, i); }
  uint32_t number(double value) { return emit(TN_EXPR_CONST, 0, 0, 0, value); }

  // What is left of x behind QuantizeLinear and DequantizeLinear: low and high are the type's
  // bounds less the zero point.
  uint32_t fake_quantized(uint32_t x, uint32_t scale, double low, double high) {
    uint32_t steps = emit(TN_EXPR_ROUND, emit(TN_EXPR_DIV, x, scale));
    uint32_t least = emit(TN_EXPR_MAX, steps, number(low));
    return emit(TN_EXPR_MUL, emit(TN_EXPR_MIN, least, number(high)), scale);
  }

  // A whole program, its input i being what operand(i) gives; the index of its result.
  template <class Operand>
  uint32_t append(std::span<const tn_expr_node> expr, Operand&& operand) {
    std::vector<uint32_t> at;
    for (const tn_expr_node& e : expr) {
      if (e.op == TN_EXPR_INPUT) {
        at.push_back(operand(e.a));
      } else if (e.op == TN_EXPR_CONST) {
        at.push_back(number(e.imm));
      } else {
        // Operands that an intrinsic does not have stay 0.
        bool has_b = e.op >= kFirstOfTwo, has_c = e.op >= kFirstOfThree;
        at.push_back(emit(e.op, at[e.a], has_b ? at[e.b] : 0, has_c ? at[e.c] : 0));
      }
    }
    return at.back();
  }

  size_t size() const { return nodes_.size(); }
  const std::vector<tn_expr_node>& nodes() const { return nodes_; }
  // As a program ends: its last node is the result.
  std::vector<tn_expr_node> finish(uint32_t result) {
    if (result + 1 != nodes_.size()) nodes_.push_back(copy_of(result));
    return std::move(nodes_);
  }
  // The same as the expression of a node.
  void finish(uint32_t result,
              Node* node,
              uint32_t domain = TN_EXPR_DOMAIN_FLOAT,
              uint32_t bits = 0) {
    node->expr = finish(result);
    node->domain = domain;
    node->bits = bits;
  }

 private:
  static constexpr uint32_t kFirstOfTwo = TN_EXPR_ADD, kFirstOfThree = TN_EXPR_SELECT;
  tn_expr_node copy_of(uint32_t result) const { return nodes_[result]; }

  bool rounds_;
  std::vector<tn_expr_node> nodes_;
};

}  // namespace tenon::backend
