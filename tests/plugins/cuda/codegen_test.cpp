// SPDX-License-Identifier: Apache-2.0
// Each scalar function of abi/expr.md as text, compiled for GPUs and run on the CPU.

#include <map>

#include <gtest/gtest.h>

#include "codegen/compiler.hpp"
#include "codegen/intrinsics.hpp"
#include "codegen/pointwise_text.hpp"
#include "graph_numbers.hpp"
#include "plugins/plugin_session.hpp"

namespace tenon::cuda {
namespace {

int operands_of(uint32_t op) {
  return op >= 128 ? 3 : op >= 64 ? 2 : 1;
}

// Programs that apply one function to the inputs, kept alive by the group's owner.
struct OneFunction {
  std::vector<tn_expr_node> nodes;
  tn_expr_program program{};
  PointwiseGroup group;

  OneFunction(uint32_t op, uint32_t domain, uint32_t bits, uint32_t dtype) {
    int n = operands_of(op);
    for (int i = 0; i < n; ++i)
      nodes.push_back({TN_EXPR_INPUT, static_cast<uint32_t>(i), 0, 0, 0});
    nodes.push_back({op, 0, n > 1 ? 1u : 0u, n > 2 ? 2u : 0u, 0});
    program = {nodes.data(), nodes.size(), static_cast<uint32_t>(n), domain, bits, 0};
    PointwisePart part;
    part.program = program;
    part.dtype = dtype;
    for (int i = 0; i < n; ++i) {
      part.operands.push_back({true, i});
      group.inputs.push_back({dtype, {64}});
    }
    group.parts.push_back(part);
    group.dims = {64};
    group.dtype = dtype;
  }
};

struct Domain {
  const char* name;
  uint32_t domain, bits, dtype;
};
constexpr Domain kDomains[] = {
    {"f32", TN_EXPR_DOMAIN_FLOAT, 0, TN_F32},   {"f16", TN_EXPR_DOMAIN_FLOAT, 0, TN_F16},
    {"bf16", TN_EXPR_DOMAIN_FLOAT, 0, TN_BF16}, {"f64", TN_EXPR_DOMAIN_FLOAT, 0, TN_F64},
    {"i8", TN_EXPR_DOMAIN_INT, 8, TN_I8},       {"i32", TN_EXPR_DOMAIN_INT, 32, TN_I32},
    {"i64", TN_EXPR_DOMAIN_INT, 64, TN_I64},    {"u8", TN_EXPR_DOMAIN_UINT, 8, TN_U8},
    {"bool", TN_EXPR_DOMAIN_UINT, 1, TN_BOOL},
};

TEST(Intrinsics, AreAllThatTheListNames) {
  std::map<uint32_t, int> seen;
  for (const Intrinsic& row : intrinsics())
    ++seen[row.op];
  for (uint32_t op = TN_EXPR_NEG; op <= TN_EXPR_BITNOT; ++op)
    EXPECT_EQ(seen[op], 1) << op;
  for (uint32_t op = TN_EXPR_ADD; op <= TN_EXPR_SHR; ++op)
    EXPECT_EQ(seen[op], 1) << op;
  EXPECT_EQ(seen[TN_EXPR_SELECT], 1);
  EXPECT_EQ(find_intrinsic(200), nullptr);
}

// A session gives the services that errors are made of.
class Compiler : public tenon::test::PluginTest {};
class InDomain : public Compiler, public testing::WithParamInterface<Domain> {};

TEST_P(InDomain, EveryFunctionCompilesForTwoArchitectures) {
  if (Result<CompilerVersion> there = compiler_version(); !there.ok()) {
    GTEST_SKIP() << there.status().message();
  }
  const Domain& in = GetParam();
  std::map<std::string, std::string> sources;  // by symbol: some functions have one text
  for (const Intrinsic& row : intrinsics()) {
    bool is_there = (in.domain == TN_EXPR_DOMAIN_FLOAT ? row.floating : row.integer) != nullptr;
    PointwiseText text = pointwise_text(OneFunction(row.op, in.domain, in.bits, in.dtype).group);
    EXPECT_EQ(text.symbol.empty(), !is_there) << row.op;
    sources[text.symbol] = text.source;
  }
  std::string source;
  for (const auto& [symbol, text] : sources)
    source += text;
  for (int architecture : {80, 90}) {
    Result<std::string> made = compile_text(source, architecture);
    ASSERT_TRUE(made.ok()) << made.status().message();
  }
}
INSTANTIATE_TEST_SUITE_P(Types, InDomain, testing::ValuesIn(kDomains), [](const auto& chosen) {
  return chosen.param.name;
});

TEST(Layout, MergesAxesThatAllInputsWalkAlike) {
  PointwiseGroup group;
  group.inputs = {{TN_F32, {4, 6, 8}}, {TN_F32, {8}}, {TN_F32, {}}, {TN_F32, {4, 1, 1}}};
  group.dims = {4, 6, 8};
  group.dtype = TN_F32;

  PointwiseLayout layout = layout_of(group);

  EXPECT_EQ(layout.width, 4);
  EXPECT_EQ(layout.dims, (Dims{2, 6, 4}));  // the innermost first, in vectors
  EXPECT_EQ(layout.strides[0], (Dims{1, 8, 48}));
  EXPECT_EQ(layout.strides[1], (Dims{1, 0, 0}));
  EXPECT_EQ(layout.strides[2], (Dims{0, 0, 0}));
  EXPECT_EQ(layout.strides[3], (Dims{0, 0, 1}));
}

TEST(Layout, IsOneAxisWhereNothingIsBroadcast) {
  PointwiseGroup group;
  group.inputs = {{TN_BF16, {4, 6, 8}}, {TN_BF16, {1, 1, 1}}};
  group.dims = {4, 6, 8};
  group.dtype = TN_BF16;

  PointwiseLayout layout = layout_of(group);

  EXPECT_EQ(layout.width, 8);
  EXPECT_EQ(layout.dims, Dims{24});
}

TEST(Text, IsTheSameForOtherSizesOfTheSameForm) {
  OneFunction small(TN_EXPR_ADD, TN_EXPR_DOMAIN_FLOAT, 0, TN_F32);
  OneFunction large(TN_EXPR_ADD, TN_EXPR_DOMAIN_FLOAT, 0, TN_F32);
  large.group.dims = {1024, 64};
  for (PointwiseGroup::Input& input : large.group.inputs)
    input.dims = {1024, 64};

  EXPECT_EQ(pointwise_text(small.group).source, pointwise_text(large.group).source);
  EXPECT_NE(pointwise_text(small.group).words, pointwise_text(large.group).words);
}

TEST_F(Compiler, SaysWhatIsWrongWithAText) {
  if (Result<CompilerVersion> there = compiler_version(); !there.ok()) {
    GTEST_SKIP() << there.status().message();
  }
  Result<std::string> made = compile_text("TN_KERNEL(k, int) { nonsense; }", 90);

  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("nonsense"), std::string::npos);
}

}  // namespace
}  // namespace tenon::cuda
