// SPDX-License-Identifier: Apache-2.0
#pragma once
// The derivatives of abi/expr.md's intrinsics, built from operators of ONNX. Those that choose
// among their operands (min, max, select) are the business of whoever goes through the program.

#include <optional>
#include <vector>

#include "tenon/expr.h"

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/op.hpp"

#include "terms.hpp"

namespace tenon::autodiff {

// One intrinsic while its derivative is built. Operands are made from the node's inputs only when a
// rule asks for them.
class Site {
 public:
  // With `is_whole` the program's result is the node's.
  Site(Terms& terms, const tn_expr_program& program, const Gradients& gradients, bool is_whole)
      : t(terms), program_(program), gradients_(gradients), made_(program.count) {
    const Value result = gradients.of().output();
    if (is_whole) made_[program.count - 1] = Term::of(result, result.dtype() == TN_BOOL);
  }
  Term forward(uint64_t i);
  const tn_expr_node& at(uint64_t i) const { return program_.nodes[i]; }
  Term a() { return forward(at(here).a); }
  Term b() { return forward(at(here).b); }
  Term result() { return forward(here); }
  bool is_result() const { return here + 1 == program_.count; }

  Terms& t;
  uint64_t here = 0;

 private:
  Term build(uint64_t i);
  const tn_expr_program& program_;
  const Gradients& gradients_;
  std::vector<std::optional<Term>> made_;
};

// What goes to operand a and to operand b, given what came for the result. NULL: nothing does.
using Rule = Term (*)(Site&, const Term& g);
struct Derivative {
  uint32_t op;
  Rule to_a, to_b = nullptr;
};

// NULL: a step, its derivative is 0.
const Derivative* derivative_of(uint32_t op);

}  // namespace tenon::autodiff
