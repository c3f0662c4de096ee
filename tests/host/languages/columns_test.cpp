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

TEST(QuantColumn, SaysWhereItIsWrong) {
  EXPECT_EQ(wrong(parse_quant("compte act=0", kScope)),
            "column 1: expected one of compute, same_scale, table, requant, quantize, dequantize, "
            "integer, got 'compte'");
  EXPECT_EQ(wrong(parse_quant("compute weight=1", kScope)),
            "column 9: expected act=INPUT, got 'weight'");
  EXPECT_EQ(wrong(parse_quant("compute act=0 wieght=1", kScope)),
            "column 15: expected weight=INPUT, got 'wieght'");
  EXPECT_EQ(wrong(parse_quant("compute act=0 weight=3", kScope)),
            "column 22: expected an input from 0 to 2, got 3");
  EXPECT_EQ(wrong(parse_quant("compute act=0 weight=1 axis=transC?0:1", kScope)),
            "column 29: expected an attribute of the row, got 'transC'");
  EXPECT_EQ(wrong(parse_quant("compute act=0 weight=1 axis=transB?0", kScope)),
            "column 37: expected ':', got end of text");
  EXPECT_EQ(
      wrong(parse_quant("compute act=0 weight=1 axes=1", kScope)),
      "column 24: expected bias=, axis=, ',', fused, rows= or stored= (once each), got 'axes'");
  EXPECT_EQ(wrong(parse_quant("compute act=0 weight=1, act=0 weight=2", kScope)),
            "column 39: expected fused: several products are more than one sum, got end of text");
  EXPECT_EQ(wrong(parse_quant("table table", kScope)),
            "column 7: expected rows= or stored= (once each), got 'table'");
  EXPECT_EQ(wrong(parse_quant("stored=1", kScope)),
            "column 9: expected ':' and an axis, got end of text");
  EXPECT_EQ(wrong(parse_quant("same_scale rows=x", kScope)),
            "column 17: expected the number of an input, got 'x'");
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

TEST(CastColumn, SaysWhereItIsWrong) {
  EXPECT_EQ(wrong(parse_cast("cup=low", kScope)),
            "column 1: expected one of cpu, cuda, opencl, vulkan, metal, rocm, oneapi, webgpu, "
            "hexagon, maia, ext_dev, trn, got 'cup'");
  EXPECT_EQ(wrong(parse_cast("cpu=lwo", kScope)),
            "column 5: expected one of follow, low, fp32, fp32_out, promote, keep, banned, got "
            "'lwo'");
  EXPECT_EQ(wrong(parse_cast("cpu low", kScope)), "column 5: expected '=', got 'low'");
  EXPECT_EQ(wrong(parse_cast("cpu=low cpu=fp32", kScope)),
            "column 9: expected each device once, got 'cpu'");
  EXPECT_EQ(wrong(parse_cast("own=7", kScope)), "column 5: expected an input from 0 to 2, got 7");
}

TEST(RecomputeColumn, HasADefaultByTheKindOfOperator) {
  EXPECT_EQ(*parse_recompute("", true), TN_RECOMPUTE_CHEAP);
  EXPECT_EQ(*parse_recompute("", false), TN_RECOMPUTE_EXPENSIVE);
  EXPECT_EQ(*parse_recompute("fusible", false), TN_RECOMPUTE_FUSIBLE);
  EXPECT_EQ(*parse_recompute("never", true), TN_RECOMPUTE_NEVER);
}

TEST(RecomputeColumn, SaysWhereItIsWrong) {
  EXPECT_EQ(wrong(parse_recompute("chaep", false)),
            "column 1: expected one of cheap, fusible, expensive, never, got 'chaep'");
  EXPECT_EQ(wrong(parse_recompute("cheap cheap", false)),
            "column 7: expected end of text, got 'cheap'");
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

TEST(CouplingColumn, SaysWhereItIsWrong) {
  EXPECT_EQ(wrong(parse_coupling("conct axis=axis", kScope)),
            "column 1: expected one of same, concat, split, slice, permute, pad, scale, gather, "
            "reduce, shape, matrices, view, got 'conct'");
  EXPECT_EQ(wrong(parse_coupling("concat axs=axis", kScope)),
            "column 8: expected one of axis, got 'axs'");
  EXPECT_EQ(wrong(parse_coupling("concat axis=along", kScope)),
            "column 13: expected an attribute of the row, got 'along'");
  EXPECT_EQ(wrong(parse_coupling("concat axis=axis axis=1", kScope)),
            "column 18: expected end of text, got 'axis'");
  EXPECT_EQ(wrong(parse_coupling("same axis=1", kScope)),
            "column 6: expected end of text, got 'axis'");
  EXPECT_EQ(wrong(parse_coupling("pad pads 1", kScope)), "column 10: expected '=', got '1'");
}

TEST(ColumnScope, AllowsAnyInputWhereAxesDoNotCountThem) {
  ColumnScope open;
  EXPECT_EQ(wrong(parse_quant("stored=62:0", open)), "");
  EXPECT_EQ(wrong(parse_quant("stored=63:0", open)),
            "column 8: expected an input from 0 to 62, got 63");
}

}  // namespace
}  // namespace tenon::host
