// SPDX-License-Identifier: Apache-2.0
// Forms of float operators that have an implementation of their own: that it is taken, and agrees
// with the reference.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct Form {
  const char* name;
  std::string body;    // of a graph
  std::string kernel;  // that runs, as a regular expression
};

class FloatForms : public BothBackends, public testing::WithParamInterface<Form> {};

TEST_P(FloatForms, AgreeWithTheReferenceInTheirOwnImplementation) {
  OwnedGraph graph = parse("graph {\n" + GetParam().body + "\n}");
  const Outcome want = run(graph, {{"backend", "reference"}});
  const Outcome got = run(graph, {{"backend", "onednn"}, {"threads", 2}});

  ASSERT_EQ(want.error + got.error, "");
  EXPECT_EQ(got.plan["fallback_nodes"], json::array());
  ASSERT_EQ(got.outputs.size(), want.outputs.size());
  for (size_t i = 0; i < want.outputs.size(); ++i)
    expect_near(got.outputs[i], want.outputs[i], 3e-6);
  bool is_taken = false;
  for (const json& part : got.plan["partitions"])
    for (const auto& [kernel, n] : part["kernels"].items())
      is_taken = is_taken || testing::Matches(testing::ContainsRegex(GetParam().kernel))(kernel);
  EXPECT_TRUE(is_taken) << got.plan;
}

const Form kForms[] = {
    {"ConvTransposeToFewChannels", R"(input %x: f32[2, 9, 5, 7]
  input %w: f32[9, 3, 4, 3]
  input %b: f32[3]
  %y: f32[2, 3, 10, 15] = ConvTranspose(%x, %w, %b) {strides = ints [2, 2], pads = ints [1, 0, 1, 0]} @y
  %r: f32[2, 3, 10, 15] = Relu(%y) @r
  output r = %r)",
     "tenon:fold"},
    {"ConvTransposeToFewChannelsOfASignal", R"(input %x: f32[1, 4, 31]
  input %w: f32[4, 2, 16]
  %y: f32[1, 2, 248] = ConvTranspose(%x, %w) {strides = ints [8], pads = ints [4, 4]} @y
  output y = %y)",
     "tenon:fold"},
    {"ConvTransposeToFewChannelsOfAVolume", R"(input %x: f32[1, 3, 3, 4, 5]
  input %w: f32[3, 2, 2, 3, 2]
  %y: f32[1, 2, 7, 6, 9] = ConvTranspose(%x, %w) {strides = ints [2, 1, 2], dilations = ints [2, 1, 1], pads = ints [0, 0, 0, 0, 0, 1]} @y
  output y = %y)",
     "tenon:fold"},
    {"ConvTransposeBehindAConv", R"(input %x: f32[1, 16, 6, 6]
  input %v: f32[16, 16, 1, 1]
  input %w: f32[16, 1, 3, 3]
  %c: f32[1, 16, 6, 6] = Conv(%x, %v) @c
  %y: f32[1, 1, 6, 6] = ConvTranspose(%c, %w) {pads = ints [1, 1, 1, 1]} @y
  output y = %y)",
     "tenon:fold"},
    {"ConvTransposeToChannelsThatLeaveLanes", R"(input %x: f32[1, 5, 4, 6]
  input %w: f32[5, 20, 2, 2]
  input %b: f32[20]
  %y: f32[1, 20, 8, 12] = ConvTranspose(%x, %w, %b) {strides = ints [2, 2]} @y
  output y = %y)",
     "tenon:fold"},
    {"Col2Im", R"(input %x: f32[2, 12, 15]
  constant %i: i64[2] = [6, 7]
  constant %k: i64[2] = [2, 3]
  %y: f32[2, 2, 6, 7] = Col2Im(%x, %i, %k) {strides = ints [2, 1], dilations = ints [1, 2], pads = ints [0, 1, 0, 1]} @y
  output y = %y)",
     "tenon:fold"},
    {"Col2ImOfASignal", R"(input %x: f32[1, 8, 9]
  constant %i: i64[1] = [20]
  constant %k: i64[1] = [4]
  %y: f32[1, 2, 20] = Col2Im(%x, %i, %k) {strides = ints [2]} @y
  output y = %y)",
     "tenon:fold"},
    {"OneRowTimesAMatrix", R"(input %a: f32[1, 67]
  input %b: f32[67, 45]
  %y: f32[1, 45] = MatMul(%a, %b) @y
  %r: f32[1, 45] = Relu(%y) @r
  output r = %r)",
     "tenon:row_product"},
    {"OneRowTimesATransposedMatrix", R"(input %a: f32[3, 1, 67]
  input %b: f32[3, 45, 67]
  %t: f32[3, 67, 45] = Transpose(%b) {perm = ints [0, 2, 1]} @t
  %y: f32[3, 1, 45] = MatMul(%a, %t) @y
  output y = %y)",
     "tenon:row_product"},
    {"RowsTimesMatricesThatAreShared", R"(input %a: f32[2, 3, 1, 40]
  input %b: f32[3, 40, 33]
  %y: f32[2, 3, 1, 33] = MatMul(%a, %b) @y
  output y = %y)",
     "tenon:row_product"},
    {"MatricesTimesOneColumn", R"(input %a: f32[4, 50, 41]
  input %b: f32[41, 1]
  %y: f32[4, 50, 1] = MatMul(%a, %b) @y
  output y = %y)",
     "tenon:column_product"},
    {"OneAxisTimesAMatrix", R"(input %a: f32[40]
  input %b: f32[2, 40, 33]
  %y: f32[2, 33] = MatMul(%a, %b) @y
  output y = %y)",
     "tenon:row_product"},
    {"MatricesTimesOneAxis", R"(input %a: f32[2, 40, 33]
  input %b: f32[33]
  %y: f32[2, 40] = MatMul(%a, %b) @y
  output y = %y)",
     "tenon:column_product"},
    {"LargestOfLongRows", R"(input %x: f32[3, 1000]
  %e: f32[3, 1000] = Round(%x) @e
  %n: f32[3, 1000] = Log(%x) @n
  %y: i64[3, 1] = ArgMax(%e) {axis = 1} @y
  %z: i64[3, 1] = ArgMax(%n) {axis = 1} @z
  %h: f32[3, 1000] = Hardmax(%e) @h
  output y = %y
  output z = %z
  output h = %h)",
     "tenon:arg_reduce"},
    {"FirstFewOfRows", R"(input %x: f32[5, 70]
  constant %k: i64[1] = [8]
  %e: f32[5, 70] = Round(%x) @e
  %y: f32[5, 8], %i: i64[5, 8] = TopK(%e, %k) @y
  %z: f32[5, 8], %j: i64[5, 8] = TopK(%e, %k) {largest = 0} @z
  output y = %y
  output i = %i
  output z = %z
  output j = %j)",
     "tenon:top_k"},
    {"TransposeOfAxesThatJoin", R"(input %x: f32[20, 3, 50]
  %y: f32[50, 20, 3] = Transpose(%x) {perm = ints [2, 0, 1]} @y
  output y = %y)",
     "tenon:copy"},
    {"SeveralFiltersOfEachChannel", R"(input %x: f32[2, 16, 9, 11]
  input %w: f32[48, 1, 3, 3]
  input %b: f32[48]
  %y: f32[2, 48, 5, 6] = Conv(%x, %w, %b) {group = 16, strides = ints [2, 2], pads = ints [1, 1, 1, 1]} @y
  %r: f32[2, 48, 5, 6] = Relu(%y) @r
  output r = %r)",
     "dw:"},
    {"NearestResizeOfRowsByAWholeFactor", R"(input %x: f32[2, 3, 5, 9]
  constant %n: f32[0] = []
  constant %f: f32[4] = [1, 1, 3, 2]
  %y: f32[2, 3, 15, 18] = Resize(%x, %n, %f) {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"} @y
  output y = %y)",
     "tenon:nearest"},
    {"NearestResizeOfRowsByAnotherFactor", R"(input %x: f32[2, 3, 5, 10]
  constant %n: f32[0] = []
  constant %f: f32[4] = [1, 1, 2.2, 1.7]
  %y: f32[2, 3, 11, 17] = Resize(%x, %n, %f) {mode = "nearest"} @y
  output y = %y)",
     "tenon:nearest"},
};

INSTANTIATE_TEST_SUITE_P(Forms, FloatForms, testing::ValuesIn(kForms), [](const auto& one) {
  return std::string(one.param.name);
});

}  // namespace
}  // namespace tenon::test
