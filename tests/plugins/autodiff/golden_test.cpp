// SPDX-License-Identifier: Apache-2.0
// Gradients of small graphs against PyTorch's in fp64.
#include "plugins/autodiff/golden_cases.hpp"

namespace tenon::test {
namespace {

class Golden : public GoldenTest {};

TEST_F(Golden, SmallCasesAgreeWithPyTorch) {
  int checked = 0;
  for (const json& one : cases()) {
    if (is_model(one)) continue;
    agreeing_in_fp64(one);
    ++checked;
  }
  EXPECT_GE(checked, 28);
}

}  // namespace
}  // namespace tenon::test
