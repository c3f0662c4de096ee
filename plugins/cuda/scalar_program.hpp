// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scalar programs that this backend makes itself, in the form of those that operator rows give.

#include <memory>
#include <vector>

#include "tenon/expr.h"

namespace tenon::cuda {

struct OwnProgram {
  std::vector<tn_expr_node> nodes;
  tn_expr_program program{};
};

class ProgramBuilder {
 public:
  // bits: to which integers wrap; 0 for reals.
  explicit ProgramBuilder(uint32_t domain = TN_EXPR_DOMAIN_FLOAT, uint32_t bits = 0) {
    made_->program.domain = domain;
    made_->program.bits = bits;
  }
  uint32_t input(uint32_t i) { return add({TN_EXPR_INPUT, i, 0, 0, 0}); }
  uint32_t number(double value) { return add({TN_EXPR_CONST, 0, 0, 0, value}); }
  uint32_t op(uint32_t op, uint32_t a, uint32_t b = 0, uint32_t c = 0) {
    return add({op, a, b, c, 0});
  }
  // The last node is the result.
  std::shared_ptr<const OwnProgram> finish(size_t inputs) {
    made_->program.nodes = made_->nodes.data();
    made_->program.count = made_->nodes.size();
    made_->program.input_count = static_cast<uint32_t>(inputs);
    return std::move(made_);
  }

 private:
  uint32_t add(const tn_expr_node& node) {
    made_->nodes.push_back(node);
    return static_cast<uint32_t>(made_->nodes.size() - 1);
  }
  std::shared_ptr<OwnProgram> made_ = std::make_shared<OwnProgram>();
};

}  // namespace tenon::cuda
