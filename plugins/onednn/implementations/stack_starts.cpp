// SPDX-License-Identifier: Apache-2.0
#include "stack_starts.hpp"

namespace tenon::onednn {

std::vector<int64_t> stack_starts(const Dims& operand, const Dims& strides, const Dims& stack) {
  const size_t n_axes = operand.size() - 2, n_added = stack.size() - n_axes;
  std::vector<int64_t> starts;
  for (int64_t product = 0, n = element_count(stack); product < n; ++product) {
    int64_t at = 0, rest = product;
    for (size_t axis = stack.size(); axis-- > n_added; rest /= stack[axis])
      if (operand[axis - n_added] != 1) at += rest % stack[axis] * strides[axis - n_added];
    starts.push_back(at);
  }
  return starts;
}

}  // namespace tenon::onednn
