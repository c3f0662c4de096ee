// SPDX-License-Identifier: Apache-2.0
// Convolutions of a trained model by minimal filtering, with weights that are packed once: in fp32,
// in bf16 only where it is asked for.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "cpu.hpp"
#include "executable.hpp"
#include "graph_builder.hpp"

namespace tenon::onednn::test {
namespace {

const Dims kImage = {4, 128, 16, 16};

struct Made {
  std::vector<float> numbers;
  int filtered = 0;  // convolutions
  int packed = 0;    // weights packed in each run
};

Made run_with(const CompileOptions& options) {
  GraphBuilder b(3);
  const int x = b.input("x", kImage);
  b.output(b.add(b.relu(b.conv(b.relu(b.conv(x, 128, 3, 1)), 128, 3, 1)), x));
  b.graph.finish();
  WeightStore store;
  Executable exe(b.graph, options, store);
  std::vector<float> image(static_cast<size_t>(element_count(kImage)));
  for (size_t i = 0; i < image.size(); ++i)
    image[i] = std::sin(static_cast<float>(i));
  Made made{.numbers = std::vector<float>(image.size(), -99.0F)};
  const std::vector<const void*> in = {image.data()};
  const std::vector<void*> out = {made.numbers.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in, .outputs = out, .workspace = workspace.get()}), nullptr);
  for (const Step& step : exe.plan().steps) {
    made.filtered += step.kernel == "tenon:winograd" ? 1 : 0;
    made.packed += step.kernel == "tenon:winograd pack" ? 1 : 0;
  }
  return made;
}

// In fp32 the error is far below what a trained model notices; in bf16 it is twice the sum's.
TEST(TrainedWinograd, IsTakenInFp32) {
  const Made sum = run_with({.winograd = Use::kOff, .threads = 2});
  const Made filtered = run_with({.threads = 2});
  EXPECT_EQ(sum.filtered, 0);
  EXPECT_EQ(filtered.filtered, best_level() == kernels::Level::kAvx512 ? 2 : 0);
  EXPECT_EQ(filtered.packed, 0);
  float most = 0;
  for (float number : sum.numbers)
    most = std::max(most, std::abs(number));
  for (size_t i = 0; i < sum.numbers.size(); ++i)
    ASSERT_NEAR(filtered.numbers[i], sum.numbers[i], 1e-5F * most) << "at " << i;
}

TEST(TrainedWinograd, IsTakenInBf16OnlyWhereItIsAskedFor) {
  if (!computes_in_bf16()) GTEST_SKIP() << why_not_bf16();
  EXPECT_EQ(run_with({.bf16 = true, .threads = 2}).filtered, 0);
}

}  // namespace
}  // namespace tenon::onednn::test
