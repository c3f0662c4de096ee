// SPDX-License-Identifier: Apache-2.0
// Convolutions of signals with one filter for each channel.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct Signals {
  const char* name;
  int channels = 24, length = 19, taps = 3, result = 19;
  std::string op = "Conv", attributes = "pads = ints [1, 1]";
  bool is_image = true;
};

std::string graph_of(const Signals& s) {
  const auto dims = [](int a, int b, int c) {
    return "f32[" + std::to_string(a) + ", " + std::to_string(b) + ", " + std::to_string(c) + "]";
  };
  const std::string result = dims(2, s.channels, s.result);
  return "graph {\n  input %x: " + dims(2, s.channels, s.length) +
         "\n  input %w: " + dims(s.channels, 1, s.taps) + "\n  input %b: f32[" +
         std::to_string(s.channels) + "]\n  %y: " + result + " = " + s.op +
         "(%x, %w, %b) {group = " + std::to_string(s.channels) + ", " + s.attributes +
         "} @y\n  %r: " + result + " = Relu(%y) @r\n  output r = %r\n}";
}

class DepthwiseSignals : public BothBackends, public testing::WithParamInterface<Signals> {};

TEST_P(DepthwiseSignals, AgreeWithTheReferenceAndRunAsImages) {
  OwnedGraph graph = parse(graph_of(GetParam()));
  const Outcome want = run(graph, {{"backend", "reference"}});
  const Outcome got = run(graph, {{"backend", "onednn"}, {"threads", 2}});

  ASSERT_EQ(want.error + got.error, "");
  EXPECT_EQ(got.plan["fallback_nodes"], json::array());
  expect_near(got.outputs[0], want.outputs[0], 2e-6);
  bool is_image = false;
  for (const json& part : got.plan["partitions"])
    for (const auto& [kernel, n] : part["kernels"].items())
      is_image = is_image || testing::Matches(testing::ContainsRegex("dw:|depthwise"))(kernel);
  EXPECT_EQ(is_image, GetParam().is_image) << got.plan;
}

INSTANTIATE_TEST_SUITE_P(
    Forms,
    DepthwiseSignals,
    testing::Values(
        Signals{.name = "Padded"},
        Signals{.name = "OnOneSideOnly",
                .taps = 4,
                .attributes = "kernel_shape = ints [4], pads = ints [3, 0]"},
        Signals{.name = "Strided",
                .taps = 5,
                .result = 10,
                .attributes = R"(strides = ints [2], auto_pad = "SAME_LOWER")"},
        Signals{.name = "Dilated",
                .result = 13,
                .attributes = "dilations = ints [3], pads = ints [0, 0]"},
        Signals{.name = "FewChannels", .channels = 4, .is_image = false},
        Signals{.name = "Transposed",
                .taps = 4,
                .result = 38,
                .op = "ConvTranspose",
                .attributes = "strides = ints [2], pads = ints [1, 1]"},
        Signals{.name = "TransposedWithMoreBehind",
                .result = 38,
                .op = "ConvTranspose",
                .attributes = "strides = ints [2], pads = ints [1, 1], output_padding = ints [1]"},
        Signals{.name = "TransposedToAStatedShape",
                .result = 38,
                .op = "ConvTranspose",
                .attributes = "strides = ints [2], output_shape = ints [38]"}),
    [](const auto& one) { return std::string(one.param.name); });

using DepthwiseSignalGrads = BothBackends;

TEST_F(DepthwiseSignalGrads, AgreeWithTheReference) {
  expect_same(R"(graph {
  input %x: f32[2, 24, 19]
  input %w: f32[24, 1, 5]
  input %d: f32[2, 24, 10]
  constant %xs: i64[3] = [2, 24, 19]
  constant %ws: i64[3] = [24, 1, 5]
  %dx: f32[2, 24, 19] = tenon:ConvInputGrad(%d, %w, %xs) {group = 24, pads = ints [2, 2], strides = ints [2]} @n1
  %dw: f32[24, 1, 5] = tenon:ConvWeightGrad(%x, %d, %ws) {group = 24, pads = ints [2, 2], strides = ints [2]} @n2
  output dx = %dx
  output dw = %dw
})");
}

}  // namespace
}  // namespace tenon::test
