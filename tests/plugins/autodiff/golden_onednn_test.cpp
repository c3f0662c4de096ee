// SPDX-License-Identifier: Apache-2.0
// Gradients against PyTorch's: whole models in fp64, and how near onednn's fp32 comes to that.
#include "plugins/autodiff/golden_cases.hpp"

namespace tenon::test {
namespace {

class GoldenOnednn : public GoldenTest {
 protected:
  void check(const json& one) {
    std::vector<Numbers> wide = agreeing_in_fp64(one);
    if (!wide.empty()) near_in_fp32(one, wide);
  }
};

TEST_F(GoldenOnednn, SmallCasesAreAsNearAsPyTorch) {
  for (const json& one : cases())
    if (!is_model(one)) check(one);
}

TEST_F(GoldenOnednn, ResNet18AgreesWithPyTorch) {
  check(case_named("resnet18"));
}

TEST_F(GoldenOnednn, MiniLmAgreesWithPyTorch) {
  check(case_named("minilm"));
}

TEST_F(GoldenOnednn, Gpt2SmallAgreesWithPyTorch) {
  check(case_named("gpt2_small"));
}

}  // namespace
}  // namespace tenon::test
