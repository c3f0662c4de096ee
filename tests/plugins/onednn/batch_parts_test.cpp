// SPDX-License-Identifier: Apache-2.0
// Batches whose first activations outgrow the caches run in parts, and to the same answers.

#include <gtest/gtest.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class BatchParts : public BothBackends {
 protected:
  // Steps of the plan, after comparing with the reference.
  int steps_of(const std::string& body, double tolerance = 2e-5) {
    OwnedGraph graph = parse("graph {\n" + body + "\n}");
    Outcome expected = run(graph, {{"backend", "reference"}});
    Outcome got = run(graph, {{"backend", "onednn"}, {"threads", 2}});
    EXPECT_EQ(expected.error + got.error, "");
    if (!expected.error.empty() || !got.error.empty()) return -1;
    EXPECT_EQ(got.outputs.size(), expected.outputs.size());
    for (size_t k = 0; k < expected.outputs.size(); ++k)
      expect_near(got.outputs[k], expected.outputs[k], tolerance);
    return got.plan["partitions"][0]["steps"].get<int>();
  }
};

// 8 samples of 8 channels of 256 x 256 are 16 MiB. The batch is as long as a weight has channels.
std::string network(int batch) {
  const std::string n = std::to_string(batch);
  return "input %x: f32[" + n + R"(, 2, 256, 256]
  constant %w: f32[8, 2, 1, 1] = [1, 2, -1, 0.5, 0.25, 3, 1, -2, 0.5, 1, 2, 1, -1, -1, 0, 2]
  constant %b: f32[8] = [0, 1, 0, -1, 0.5, 0, 2, 0]
  constant %v: f32[2, 8, 1, 1] = [1, 0, 2, 0, -1, 0, 1, 0, 0, 1, 0, -2, 0, 1, 0, 0.5]
  constant %f: f32[] = [0.5]
  %h: f32[)" +
         n + R"(, 8, 256, 256] = Conv(%x, %w, %b) @h
  %r: f32[)" +
         n + R"(, 8, 256, 256] = Relu(%h) @r
  %s: f32[)" +
         n + R"(, 8, 256, 256] = Mul(%r, %f) @s
  %p: f32[)" +
         n + R"(, 8, 128, 128] = MaxPool(%r) {kernel_shape = ints [2, 2], strides = ints [2, 2]} @p
  %q: f32[)" +
         n + R"(, 8, 128, 128] = MaxPool(%s) {kernel_shape = ints [2, 2], strides = ints [2, 2]} @q
  %t: f32[)" +
         n + R"(, 8, 128, 128] = Add(%p, %q) @t
  %y: f32[)" +
         n + R"(, 2, 128, 128] = Conv(%t, %v) @y
  output y = %y
  output p = %p)";
}

// The same behind a pointwise operator that the backend has no row for.
std::string behind_a_difference(int batch) {
  const std::string type = "f32[" + std::to_string(batch) + ", 2, 256, 256]";
  std::string body = network(batch);
  body.replace(body.find("Conv(%x"), 7, "Conv(%d");
  const std::string difference = "\n  %d: " + type + " = Sub(%x, %f) @d\n";
  const size_t behind_constants = body.find('\n', body.find("constant %f"));
  return body.replace(behind_constants, 1, difference);
}

TEST_F(BatchParts, GoThroughPointwiseOperatorsOfAnyName) {
  EXPECT_GE(steps_of(behind_a_difference(8)), steps_of(behind_a_difference(2)) + 9);
}

TEST_F(BatchParts, StayWholeWhereEachSampleHasItsOwnScale) {
  std::string body = network(8);
  body.resize(body.find("  %q: f32"));
  body.erase(body.find("  %s: f32"), body.find("  %p: f32") - body.find("  %s: f32"));
  steps_of(body + R"(  constant %scale: f32[8] = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08]
  constant %zero: u8[8] = [0, 0, 0, 0, 0, 0, 0, 0]
  %quantized: u8[8, 8, 128, 128] = QuantizeLinear(%p, %scale, %zero) {axis = 0} @quantized
  output quantized = %quantized)",
           0.005);  // one code of 256
}

TEST_F(BatchParts, StayWholeWhereBlocksOfSamplesHaveTheirScales) {
  const std::string type = "f32[8, 8, 256, 256]";
  std::string body = "input %x: " + type + R"(
  constant %four: f32[4, 1, 1, 1] = [0.01, 0.02, 0.03, 0.04]
  constant %shape: i64[4] = [4, 8, 256, 256]
  %scale: f32[4, 8, 256, 256] = Expand(%four, %shape) @scale
)";
  std::string last = "x";
  for (const char* next : {"a", "b", "c", "d"}) {  // activations that outgrow the caches
    body += "  %" + std::string(next) + ": " + type + " = Abs(%" + last + ") @" + next + "\n";
    last = next;
  }
  steps_of(
      body + R"(  %e: u8[8, 8, 256, 256] = QuantizeLinear(%d, %scale) {axis = 0, block_size = 2} @e
  output e = %e)",
      0.01);  // one step of 200
}

TEST_F(BatchParts, StayWholeWhereTheirOwnMeansAreWeights) {
  const std::string type = "f32[4, 4, 512, 512]";
  OwnedGraph graph =
      parse("graph {\n  input %x: " + type + "\n  %a: " + type +
            " = Abs(%x) @a\n  %w: f32[4, 4, 1, 1] = GlobalAveragePool(%a) @w\n  %c: " + type +
            R"( = Conv(%a, %w) @c
  %y: f32[4, 4, 1, 1] = GlobalAveragePool(%c) @y
  output y = %y
})");
  Outcome expected = run(graph, {{"backend", "reference"}});
  Outcome got = run(graph, {{"backend", "onednn"}, {"threads", 2}});
  ASSERT_EQ(expected.error + got.error, "");
  EXPECT_EQ(got.plan["fallback_nodes"], json::array());
  expect_near(got.outputs[0], expected.outputs[0], 2e-5);
}

TEST_F(BatchParts, GiveWhatTheWholeGives) {
  // Three steps at least in each of four parts: convolution, factor, pools.
  EXPECT_GE(steps_of(network(8)), steps_of(network(2)) + 9);
}

}  // namespace
}  // namespace tenon::test
