// SPDX-License-Identifier: Apache-2.0
// Convolutions in bf16 whose windows, strides and lines have a common factor: a kernel may take
// several pixels of a line for one of more channels.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class FoldedPixels : public BothBackends {};

struct Line {
  int channels, window, stride, width;
};

TEST_F(FoldedPixels, AreMultipliedWithTheirWeights) {
  const Line lines[] = {{48, 2, 2, 16}, {80, 2, 2, 28},  {80, 4, 2, 16}, {112, 4, 4, 16},
                        {16, 4, 4, 16}, {24, 4, 4, 20},  {24, 2, 2, 16}, {8, 8, 8, 16},
                        {16, 6, 6, 24}, {48, 6, 4, 24},  {12, 8, 8, 16}, {64, 2, 2, 16},
                        {48, 3, 3, 18}, {40, 12, 4, 24}, {48, 2, 2, 17}};
  for (const Line& line : lines) {
    SCOPED_TRACE(testing::Message() << line.channels << " channels, window " << line.window
                                    << ", stride " << line.stride << ", width " << line.width);
    const std::string c = std::to_string(line.channels), k = std::to_string(line.window);
    const std::string s = std::to_string(line.stride), w = std::to_string(line.width);
    const std::string n = std::to_string((line.width - line.window) / line.stride + 1);
    OwnedGraph graph =
        parse("graph {\n  input %x: f32[2, " + c + ", 6, " + w + "]\n  input %w: f32[32, " + c +
              ", 2, " + k + "]\n  %y: f32[2, 32, 3, " + n +
              "] = Conv(%x, %w) {strides = ints [2, " + s + "]} @conv\n  output y = %y\n}");
    const Outcome expected = run(graph, {{"backend", "reference"}});
    const Outcome got = run(graph, {{"backend", "onednn"}, {"precision", "bf16"}});
    ASSERT_EQ(expected.error + got.error, "");
    expect_near(got.outputs[0], expected.outputs[0], 0.02);
  }
}

}  // namespace
}  // namespace tenon::test
