// SPDX-License-Identifier: Apache-2.0
// The grammar of abi/quant.md: what each column means, and where a bad one is wrong.
#include "languages/columns.hpp"

#include <gmock/gmock.h>

namespace tenon::host {
namespace {

using testing::ElementsAre;

const ColumnScope kScope{3,
                         [](std::string_view name) { return name == "transB" || name == "axis"; }};

std::string_view text_of(tn_str text) {
  return {text.data, text.len};
}
template <class T>
std::string wrong(const Parsed<T>& parsed) {
  return parsed ? "" : parsed.error().text();
}

TEST(QuantColumn, IsFloatWhenEmpty) {
  Parsed<QuantColumn> got = parse_quant("", kScope);

  ASSERT_EQ(wrong(got), "");
  EXPECT_EQ(got->kind, TN_QUANT_FLOAT);
  EXPECT_EQ(got->rows, -1);
}

TEST(QuantColumn, ReadsAProduct) {
  Parsed<QuantColumn> got = parse_quant("compute act=0 weight=1 bias=2 axis=transB?0:1", kScope);

  ASSERT_EQ(wrong(got), "");
  EXPECT_EQ(got->kind, TN_QUANT_COMPUTE);
  EXPECT_EQ(got->flags, 0u);
  ASSERT_EQ(got->products.size(), 1u);
  const tn_quant_product& one = got->products[0];
  EXPECT_THAT((std::vector{one.act, one.weight, one.bias, one.axis.value, one.axis.otherwise}),
              ElementsAre(0, 1, 2, 0, 1));
  EXPECT_EQ(text_of(one.axis.attribute), "transB");
}

TEST(QuantColumn, ReadsSeveralWeights) {
  Parsed<QuantColumn> got =
      parse_quant("compute act=0 weight=1 axis=1, act=0 weight=2 axis=0 fused", kScope);

  ASSERT_EQ(wrong(got), "");
  ASSERT_EQ(got->products.size(), 2u);
  EXPECT_EQ(got->products[0].bias, -1);
  EXPECT_EQ(got->products[0].axis.value, 1);
  EXPECT_EQ(got->products[1].weight, 2);
  EXPECT_EQ(got->products[1].axis.value, 0);
  EXPECT_EQ(got->flags, TN_QUANT_FUSED);
}

TEST(QuantColumn, ReadsEveryOtherRoleAndWord) {
  for (auto [word, kind] : {std::pair{"same_scale", TN_QUANT_SAME_SCALE},
                            {"table", TN_QUANT_TABLE},
                            {"requant", TN_QUANT_REQUANT},
                            {"quantize", TN_QUANT_QUANTIZE},
                            {"dequantize", TN_QUANT_DEQUANTIZE},
                            {"integer", TN_QUANT_INTEGER}}) {
    Parsed<QuantColumn> got = parse_quant(word, kScope);
    ASSERT_EQ(wrong(got), "");
    EXPECT_EQ(got->kind, kind) << word;
  }
  Parsed<QuantColumn> rows = parse_quant("same_scale rows=0", kScope);
  ASSERT_EQ(wrong(rows), "");
  EXPECT_EQ(rows->rows, 0);
  Parsed<QuantColumn> stored = parse_quant("stored=1:1,2:transB?1:0", kScope);
  ASSERT_EQ(wrong(stored), "");
  EXPECT_EQ(stored->kind, TN_QUANT_FLOAT);
  ASSERT_EQ(stored->stored.size(), 2u);
  EXPECT_EQ(stored->stored[1].input, 2);
  EXPECT_EQ(stored->stored[1].axis.value, 1);
}

TEST(CastColumn, ReadsDevicesAndOwnInputs) {
  Parsed<CastColumn> got = parse_cast("cpu=low cuda=fp32_out own=1,2", kScope);

  ASSERT_EQ(wrong(got), "");
  ASSERT_EQ(got->rules.size(), 2u);
  EXPECT_EQ(text_of(got->rules[0].device), "cpu");
  EXPECT_EQ(got->rules[0].category, TN_CAST_LOW);
  EXPECT_EQ(got->rules[1].category, TN_CAST_FP32_OUT);
  EXPECT_EQ(got->own_inputs, 6u);
}

TEST(RecomputeColumn, HasADefaultByTheKindOfOperator) {
  EXPECT_EQ(*parse_recompute("", true), TN_RECOMPUTE_CHEAP);
  EXPECT_EQ(*parse_recompute("", false), TN_RECOMPUTE_EXPENSIVE);
  EXPECT_EQ(*parse_recompute("fusible", false), TN_RECOMPUTE_FUSIBLE);
  EXPECT_EQ(*parse_recompute("never", true), TN_RECOMPUTE_NEVER);
}

TEST(CouplingColumn, ReadsAFamilyAndWhereItsKeysAre) {
  Parsed<CouplingColumn> got = parse_coupling("slice starts=1 axes=axis", kScope);

  ASSERT_EQ(wrong(got), "");
  EXPECT_EQ(got->family, TN_COUPLING_SLICE);
  ASSERT_EQ(got->keys.size(), 2u);
  EXPECT_EQ(text_of(got->keys[0].key), "starts");
  EXPECT_EQ(got->keys[0].input, 1);
  EXPECT_EQ(got->keys[1].input, -1);
  EXPECT_EQ(text_of(got->keys[1].attribute), "axis");
  EXPECT_EQ(parse_coupling("", kScope)->family, TN_COUPLING_NONE);
}

// What a column says of a text that is wrong.
struct Wrong {
  std::string (*parse)(std::string_view text);
  const char* text;
  const char* message;
};
std::string quant(std::string_view text) {
  return wrong(parse_quant(text, kScope));
}
std::string cast(std::string_view text) {
  return wrong(parse_cast(text, kScope));
}
std::string recompute(std::string_view text) {
  return wrong(parse_recompute(text, false));
}
std::string coupling(std::string_view text) {
  return wrong(parse_coupling(text, kScope));
}
constexpr Wrong kWrong[] = {
    {quant, "compte act=0",
     "column 1: expected one of compute, same_scale, table, requant, quantize, dequantize, "
     "integer, got 'compte'"},
    {quant, "compute weight=1", "column 9: expected act=INPUT, got 'weight'"},
    {quant, "compute act=0 wieght=1", "column 15: expected weight=INPUT, got 'wieght'"},
    {quant, "compute act=0 weight=3", "column 22: expected an input from 0 to 2, got 3"},
    {quant, "compute act=0 weight=1 axis=transC?0:1",
     "column 29: expected an attribute of the row, got 'transC'"},
    {quant, "compute act=0 weight=1 axis=transB?0", "column 37: expected ':', got end of text"},
    {quant, "compute act=0 weight=1 axes=1",
     "column 24: expected bias=, axis=, ',', fused, rows= or stored= (once each), got 'axes'"},
    {quant, "compute act=0 weight=1, act=0 weight=2",
     "column 39: expected fused: several products are more than one sum, got end of text"},
    {quant, "table table", "column 7: expected rows= or stored= (once each), got 'table'"},
    {quant, "stored=1", "column 9: expected ':' and an axis, got end of text"},
    {quant, "same_scale rows=x", "column 17: expected the number of an input, got 'x'"},
    {cast, "cup=low",
     "column 1: expected one of O2, O3, cpu, cuda, opencl, vulkan, metal, rocm, oneapi, webgpu, "
     "hexagon, "
     "maia, ext_dev, trn, got 'cup'"},
    {cast, "cpu=lwo",
     "column 5: expected one of follow, low, fp32, fp32_out, promote, keep, banned, got 'lwo'"},
    {cast, "cpu low", "column 5: expected '=', got 'low'"},
    {cast, "cpu=low cpu=fp32", "column 9: expected each device once, got 'cpu'"},
    {cast, "own=7", "column 5: expected an input from 0 to 2, got 7"},
    {recompute, "chaep", "column 1: expected one of cheap, fusible, expensive, never, got 'chaep'"},
    {recompute, "cheap cheap", "column 7: expected end of text, got 'cheap'"},
    {coupling, "conct axis=axis",
     "column 1: expected one of same, concat, split, slice, permute, pad, scale, gather, reduce, "
     "shape, matrices, view, attention, recurrent, equation, got 'conct'"},
    {coupling, "concat axs=axis", "column 8: expected one of axis, got 'axs'"},
    {coupling, "concat axis=along", "column 13: expected an attribute of the row, got 'along'"},
    {coupling, "concat axis=axis axis=1", "column 18: expected end of text, got 'axis'"},
    {coupling, "same axis=1",
     "column 6: expected one of sizes, value, statistics, groups, got 'axis'"},
    {coupling, "pad pads 1", "column 10: expected '=', got '1'"},
};

TEST(Columns, SayWhereTheyAreWrong) {
  for (const Wrong& one : kWrong)
    EXPECT_EQ(one.parse(one.text), one.message) << one.text;
}

TEST(ColumnScope, AllowsAnyInputWhereAxesDoNotCountThem) {
  ColumnScope open;
  EXPECT_EQ(wrong(parse_quant("stored=62:0", open)), "");
  EXPECT_EQ(wrong(parse_quant("stored=63:0", open)),
            "column 8: expected an input from 0 to 62, got 63");
}

}  // namespace
}  // namespace tenon::host
