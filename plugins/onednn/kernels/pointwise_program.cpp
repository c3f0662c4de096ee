// SPDX-License-Identifier: Apache-2.0
#include "pointwise_program.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

int arity(uint32_t op) {
  if (op < 16) return 0;
  if (op < 64) return 1;
  return op < 128 ? 2 : 3;
}

Program::Program(std::span<const tn_expr_node> given, std::span<const uint32_t> given_results)
    : nodes(given.begin(), given.end()), results(given_results.begin(), given_results.end()) {
  for (tn_expr_node& node : nodes) {
    if (node.op == TN_EXPR_POW) simplify_power(node);
  }
  count_readers();
  for (uint64_t i = 0; i < nodes.size(); ++i) {
    if (!dead[i]) fuse_product(nodes[i]);  // a dead sum would take the product from its reader
  }
}

bool Program::is_constant(uint32_t i, double value) const {
  return nodes[i].op == TN_EXPR_CONST && nodes[i].imm == value;
}

// Powers that are one multiplication or less.
void Program::simplify_power(tn_expr_node& node) const {
  const uint32_t base = node.a;
  if (is_constant(node.b, 2.0)) {
    node = {TN_EXPR_MUL, base, base, 0, 0.0};
  } else if (is_constant(node.b, -1.0)) {
    node = {TN_EXPR_RECIPROCAL, base, 0, 0, 0.0};
  }
}

// Readers that are themselves unread do not count: walk from the end.
void Program::count_readers() {
  readers.assign(nodes.size(), 0);
  dead.assign(nodes.size(), false);
  for (uint32_t result : results)
    readers[result] += 2;  // never fused away
  for (uint64_t i = nodes.size(); i-- > 0;) {
    const tn_expr_node& node = nodes[i];
    dead[i] = readers[i] == 0;
    if (dead[i]) continue;
    const uint32_t operands[] = {node.a, node.b, node.c};
    for (int k = 0; k < arity(node.op); ++k)
      readers[operands[k]] += 1;
  }
}

bool Program::is_private_product(uint32_t i) const {
  return nodes[i].op == TN_EXPR_MUL && readers[i] == 1;
}

void Program::fuse_product(tn_expr_node& node) {
  if (node.op != TN_EXPR_ADD && node.op != TN_EXPR_SUB) return;
  const bool add = node.op == TN_EXPR_ADD;
  const uint32_t a = node.a;
  const uint32_t b = node.b;
  if (is_private_product(a)) {
    node = {add ? kOpMulAdd : kOpMulSub, nodes[a].a, nodes[a].b, b, 0.0};
    dead[a] = true;
  } else if (is_private_product(b)) {
    node = {add ? kOpMulAdd : kOpNegMulAdd, nodes[b].a, nodes[b].b, a, 0.0};
    dead[b] = true;
  }
}

}  // namespace tenon::onednn::kernels
