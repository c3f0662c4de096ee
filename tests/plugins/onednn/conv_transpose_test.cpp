// SPDX-License-Identifier: Apache-2.0
// ConvTranspose whose padding follows from the shape of its result.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class ConvTranspose : public BothBackends {};

// Without padding two numbers, 1 and 2, make 1, 10, 102, 20, 200.
TEST_F(ConvTranspose, CutsMoreInFrontThanBehindForAStatedShape) {
  const std::string begin = R"(graph {
  input %r: f32[1, 1, 2]
  constant %zero: f32[] = [0]
  constant %one: f32[1, 1, 2] = [1, 2]
  constant %w: f32[1, 1, 3] = [1, 10, 100]
  %m: f32[1, 1, 2] = Mul(%r, %zero) @m
  %x: f32[1, 1, 2] = Add(%m, %one) @x
  %y: f32[1, 1, )";
  struct Case {
    std::string extent, more;
    std::vector<double> expected;
  };
  const Case cases[] = {
      {"4", "", {10, 102, 20, 200}},
      {"4", R"(, auto_pad = "SAME_LOWER")", {10, 102, 20, 200}},
      {"4", R"(, auto_pad = "SAME_UPPER")", {1, 10, 102, 20}},
      {"4", R"(, auto_pad = "SAME_UPPER", output_padding = ints [1])", {10, 102, 20, 200}},
      {"3", "", {10, 102, 20}},
      {"2", "", {102, 20}},
      {"6", "", {1, 10, 102, 20, 200, 0}},
      {"4", ", pads = ints [0, 1]", {10, 102, 20, 200}}};
  for (const Case& c : cases) {
    OwnedGraph graph =
        parse(begin + c.extent + "] = ConvTranspose(%x, %w) {strides = ints [2], " +
              "output_shape = ints [" + c.extent + "]" + c.more + "} @n\n  output y = %y\n}");
    for (const char* backend : {"reference", "onednn"}) {
      Outcome got = run(graph, {{"backend", backend}});
      ASSERT_EQ(got.error, "");
      EXPECT_EQ(got.plan["fallback_nodes"], json::array());
      EXPECT_EQ(got.outputs[0], c.expected) << backend << " " << c.extent << c.more;
    }
  }
}

// oneDNN takes a result that ends behind the last window only by less than a stride.
TEST_F(ConvTranspose, IsLeftAloneWhereMoreThanAStrideFollowsTheLastWindow) {
  for (const char* form : {"10] = ConvTranspose(%x, %w) {dilations = ints [2], strides = ints [1], "
                           "output_padding = ints [1]}",
                           "17] = ConvTranspose(%x, %w) {dilations = ints [3], strides = ints [2], "
                           "output_padding = ints [2]}",
                           "10] = ConvTranspose(%x, %w) {output_shape = ints [10]}"}) {
    OwnedGraph graph = parse(std::string(R"(graph {
  input %x: f32[1, 2, 5]
  constant %w: f32[2, 1, 3] = [1, 10, 100, 2, 20, 200]
  %y: f32[1, 1, )") + form + " @n\n  output y = %y\n}");
    Outcome expected = run(graph, {{"backend", "reference"}});
    Outcome got = run(graph, {{"backend", "onednn"}});
    ASSERT_EQ(got.error, "");
    EXPECT_EQ(got.outputs, expected.outputs);
    ASSERT_EQ(got.plan["fallback_nodes"].size(), 1u) << form;
    EXPECT_THAT(got.plan["fallback_nodes"][0]["why"],
                testing::HasSubstr("a stride or more behind the last window"));
  }
}

// oneDNN's gradient of a convolution computes what follows number by number.
TEST_F(ConvTranspose, LeavesWhatFollowsToItsOwnPassWhereOneDnnHasPlainLoopsForIt) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 32, 9, 9]
  input %w: f32[32, 32, 3, 3]
  input %c: f32[2, 32, 19, 19]
  %y: f32[2, 32, 19, 19] = ConvTranspose(%x, %w) {strides = ints [2, 2]} @y
  %m: f32[2, 32, 19, 19] = Mul(%y, %c) @m
  %r: f32[2, 32, 19, 19] = Relu(%m) @r
  output r = %r
})");
  const Outcome expected = run(graph, {{"backend", "reference"}});
  const Outcome got = run(graph, {{"backend", "onednn"}});
  ASSERT_EQ(got.error, "");
  expect_near(got.outputs[0], expected.outputs[0], 2e-5);
  bool is_gradient = false, has_pass = false;
  for (const auto& [kernel, n] : got.plan["partitions"][0]["kernels"].items()) {
    is_gradient = is_gradient || kernel.starts_with("conv:any");
    has_pass = has_pass || kernel.starts_with("tenon:pointwise");
  }
  EXPECT_TRUE(!is_gradient || has_pass) << got.plan;
}

// A bias is what follows too. The channels fill no register.
TEST_F(ConvTranspose, AddsABiasInItsOwnPassWhereOneDnnHasPlainLoopsForIt) {
  std::string numbers;
  for (int i = 0; i < 21; ++i)
    numbers += (i == 0 ? "" : ", ") + std::to_string(i - 10);
  for (const std::string& bias :
       {std::string("input %b: f32[21]"), "constant %b: f32[21] = [" + numbers + "]"})
    expect_same("graph {\n  " + bias + R"(
  input %x: f32[2, 21, 9, 9]
  input %w: f32[21, 1, 3, 3]
  %y: f32[2, 21, 19, 19] = ConvTranspose(%x, %w, %b) {group = 21, strides = ints [2, 2]} @y
  output y = %y
})");
}

// In bf16 too, whose plain loops are slower still: the primitive adds no bias.
TEST_F(ConvTranspose, AddsABiasInItsOwnPassInBf16) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 64, 9, 9]
  input %w: f32[64, 16, 3, 3]
  input %b: f32[64]
  input %c: f32[2, 64, 19, 19]
  %y: f32[2, 64, 19, 19] = ConvTranspose(%x, %w, %b) {group = 4, strides = ints [2, 2]} @y
  %m: f32[2, 64, 19, 19] = Mul(%y, %c) @m
  output m = %m
})");
  const Outcome expected = run(graph, {{"backend", "reference"}});
  const Outcome got = run(graph, {{"backend", "onednn"}, {"precision", "bf16"}});
  ASSERT_EQ(got.error, "");
  expect_near(got.outputs[0], expected.outputs[0], 2e-2);
  bool is_gradient = false, has_pass = false;
  for (const json& layer : got.plan["partitions"][0]["layers"]) {
    const std::string kernel = layer["kernel"];
    is_gradient = is_gradient || kernel.starts_with("conv:any");
    has_pass = has_pass || layer["name"] == "bias y";
  }
  EXPECT_TRUE(!is_gradient || has_pass) << got.plan;
}

}  // namespace
}  // namespace tenon::test
