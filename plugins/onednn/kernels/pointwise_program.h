// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pointwise program made ready for running: powers that are a product, products that add up in
// one instruction, nodes that nothing reads left out. What the interpreter and the code generator
// read.

#include <cstdint>
#include <span>
#include <vector>

#include "tenon/expr.h"

namespace tenon::onednn::kernels {

// Operands of an instruction, fused ones (kOpMulAdd, ...) included.
int arity(uint32_t op);

struct Program {
  std::vector<tn_expr_node> nodes;
  std::vector<uint32_t> results;  // the node that each output takes
  std::vector<uint32_t> readers;
  std::vector<bool> dead;

  Program() = default;
  Program(std::span<const tn_expr_node> given, std::span<const uint32_t> given_results);

 private:
  bool is_constant(uint32_t i, double value) const;
  void simplify_power(tn_expr_node& node) const;
  void count_readers();
  bool is_private_product(uint32_t i) const;
  void fuse_product(tn_expr_node& node);
};

}  // namespace tenon::onednn::kernels
