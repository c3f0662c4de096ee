// SPDX-License-Identifier: Apache-2.0
// What rows state of their operands (sdk/role/operands.hpp): refused where sizes are known, and
// before the kernel reads where only data say them.

#include "tenon/sdk/role/operands.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

class Operands : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    ASSERT_EQ(text_of(Status(tenon_plugin_load(session_, str("ops")))), "");
  }
  // A graph of these inputs ("f32[1, 4, 2, 2]", called %i0, %i1 ...) and one node.
  std::string graph_of(const std::vector<std::string>& inputs, const std::string& node) {
    std::string text = "graph {\n";
    for (size_t i = 0; i < inputs.size(); ++i)
      text += cat("  input %i", i, ": ", inputs[i], "\n");
    return cat(text, "  ", node, " @tested\n  output y = %y\n}\n");
  }
  std::string refusal(const std::vector<std::string>& inputs, const std::string& node) {
    tn_graph* raw = nullptr;
    std::string why =
        text_of(Status(services.graph->parse(ctx_, str(graph_of(inputs, node)), &raw)));
    OwnedGraph owned = OwnedGraph::take(raw);
    return why;
  }
};

struct Wrong {
  const char* name;
  std::vector<std::string> inputs;
  const char* node;
  const char* message;
};

class WrongOperands : public Operands, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongOperands, AreRefusedWithWhatWasExpected) {
  std::string why = refusal(GetParam().inputs, GetParam().node);
  EXPECT_NE(why.find(GetParam().message), std::string::npos) << why;
}

const char* const kBatchNorm = "%y: f32[*] = BatchNormalization(%i0, %i1, %i2, %i3, %i4)";

INSTANTIATE_TEST_SUITE_P(
    Rows,
    WrongOperands,
    testing::Values(Wrong{"ConvBias",
                          {"f32[1, 3, 5, 5]", "f32[4, 3, 3, 3]", "f32[7]"},
                          "%y: f32[*] = Conv(%i0, %i1, %i2)",
                          "input 2 (bias) axis 0: expected 4 (input 1 (w) axis 0), got 7"},
                    Wrong{"DftComponents",
                          {"f32[1, 8, 4]"},
                          "%y: f32[*] = DFT(%i0)",
                          "x: expected 1 or 2 components along the last axis, got 4"},
                    Wrong{"StftComponents",
                          {"f32[1, 8, 3]", "i64[]", "f32[4]"},
                          "%y: f32[*] = STFT(%i0, %i1, %i2)",
                          "signal: expected 1 or 2 components along the last axis, got 3"},
                    Wrong{"StftFrames",
                          {"f32[1, 8, 1]", "i64[]", "f32[9]"},
                          "%y: f32[*] = STFT(%i0, %i1, %i2)",
                          "frame_length: expected 1 to 8, got 9"},
                    Wrong{"RoiAlignSamples",
                          {"f32[1, 1, 5, 5]", "f32[1, 4]", "i64[1]"},
                          "%y: f32[*] = RoiAlign(%i0, %i1, %i2) {sampling_ratio = 2147483648}",
                          "sampling_ratio: expected at most 1024, got 2147483648"},
                    Wrong{"RotatedAxes",
                          {"f32[2, 2]", "i64[1]", "f32[6, 1]", "f32[6, 1]"},
                          "%y: f32[*] = com.microsoft:RotaryEmbedding(%i0, %i1, %i2, %i3)",
                          "input: expected 3 or 4 axes, got float32[2, 2]"},
                    Wrong{"RotatedPositions",
                          {"f32[2, 2, 2]", "i64[1, 1, 1]", "f32[6, 1]", "f32[6, 1]"},
                          "%y: f32[*] = com.microsoft:RotaryEmbedding(%i0, %i1, %i2, %i3)",
                          "position_ids: expected 1 or 2 axes, got int64[1, 1, 1]"},
                    Wrong{"PoolOfPadding",
                          {"f32[1, 1, 5, 5]"},
                          "%y: f32[*] = MaxPool(%i0) {kernel_shape = ints [2, 2], "
                          "pads = ints [0, 0, 0, 2]}",
                          "pads: expected less than the window along spatial axis 1, got window 5 "
                          "wholly in the padding"},
                    Wrong{"PoolOfPaddingInFront",
                          {"f32[1, 1, 5, 5]"},
                          "%y: f32[*] = AveragePool(%i0) {kernel_shape = ints [2, 2], "
                          "pads = ints [2, 0, 0, 0]}",
                          "pads: expected less than the window along spatial axis 0, got window 0 "
                          "wholly in the padding"},
                    Wrong{"PoolAroundItsInput",
                          {"f32[1, 1, 1]"},
                          "%y: f32[*] = LpPool(%i0) {kernel_shape = ints [2], "
                          "dilations = ints [3], pads = ints [1, 2]}",
                          "wholly in the padding"},
                    Wrong{"ResizeByTwo",
                          {"f32[1, 1, 4]", "f32[0]", "f32[3]", "i64[3]"},
                          "%y: f32[*] = Resize(%i0, %i1, %i2, %i3)",
                          "expected scales or sizes, got both: 3 and 3 numbers"},
                    Wrong{"ConvType",
                          {"f64[1, 3, 5, 5]", "f32[4, 3, 3, 3]"},
                          "%y: f64[*] = Conv(%i0, %i1)",
                          "input 1 (w): expected float64 as input 0, got float32"},
                    Wrong{"ConvTransposeBias",
                          {"f32[1, 3, 5, 5]", "f32[3, 4, 3, 3]", "f32[1]"},
                          "%y: f32[*] = ConvTranspose(%i0, %i1, %i2)",
                          "input 2 (bias) axis 0: expected 4 (input 1 (w) axis 1), got 1"},
                    Wrong{"BatchNormScale",
                          {"f32[1, 4, 2]", "f32[4000]", "f32[4]", "f32[4]", "f32[4]"},
                          kBatchNorm,
                          "input 1 (scale) axis 0: expected 4 (input 0 (x) axis 1), got 4000"},
                    Wrong{"BatchNormRank",
                          {"f32[1, 4, 2]", "f32[4]", "f32[4]", "f32[4, 1]", "f32[4]"},
                          kBatchNorm,
                          "input 3 (mean): expected 1 axes [c], got 2"},
                    Wrong{"GroupNorm",
                          {"f32[1, 4, 2]", "f32[4]", "f32[3]"},
                          "%y: f32[*] = GroupNormalization(%i0, %i1, %i2) {num_groups=2}",
                          "input 2 (bias) axis 0: expected 4 (input 0 (x) axis 1), got 3"},
                    Wrong{"GemmInner",
                          {"f32[2, 3]", "f32[4, 5]"},
                          "%y: f32[*] = Gemm(%i0, %i1)",
                          "input 1 (b) axis 0: expected 3 (input 0 (a) axis 1), got 4"},
                    Wrong{"GemmC",
                          {"f32[2, 3]", "f32[3, 5]", "f32[4]"},
                          "%y: f32[*] = Gemm(%i0, %i1, %i2)",
                          "input 2 axis 0: expected 1 or 5, got 4"},
                    Wrong{"LayerNormScale",
                          {"f32[3, 4]", "f32[4, 1]"},
                          "%y: f32[*] = LayerNormalization(%i0, %i1)",
                          "input 1 axis 0: expected 1, got 4"},
                    Wrong{"LstmBias",
                          {"f32[2, 1, 3]", "f32[1, 8, 3]", "f32[1, 8, 2]", "f32[1, 8]"},
                          "%y: f32[*] = LSTM(%i0, %i1, %i2, %i3) {hidden_size=2}",
                          "input 3 (bias) axis 1: expected 16"},
                    Wrong{"GruRecurrence",
                          {"f32[2, 1, 3]", "f32[1, 6, 3]", "f32[1, 6, 3]"},
                          "%y: f32[*] = GRU(%i0, %i1, %i2) {hidden_size=2}",
                          "input 2 (r) axis 2: expected 2 (attribute hidden_size), got 3"},
                    Wrong{"MissingWeight",
                          {"f32[2, 1, 3]", "f32[1, 6, 3]"},
                          "%y: f32[*] = RNN(%i0, _, %i1)",
                          "input 1 (w): expected a tensor, got none"},
                    Wrong{"TooMany",
                          {"f32[2]", "f32[2]"},
                          "%y: f32[*] = Transpose(%i0, %i1)",
                          "expected at most 1 inputs, got 2"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_F(Operands, OfANormalizationMayHaveLeadingAxesOfOne) {
  for (const char* scale : {"f32[4]", "f32[1]", "f32[1, 4]", "f32[1, 1, 4]"})
    EXPECT_EQ(refusal({"f32[3, 4]", scale}, "%y: f32[3, 4] = LayerNormalization(%i0, %i1)"), "");
}

TEST_F(Operands, OfSizesThatDataSayAreCheckedBeforeTheKernelReads) {
  std::string text = R"(graph {
  input %x: f32[n]
  input %shape: i64[3]
  input %c: f32[4]
  %wide: f32[*] = Reshape(%x, %shape) @wide
  %y: f32[*] = BatchNormalization(%wide, %c, %c, %c, %c) @norm
  output y = %y
}
)";
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "");
  OwnedGraph graph = OwnedGraph::take(raw);
  tn_plan* plan = nullptr;
  ASSERT_EQ(
      text_of(Status(tenon_compile(session_, raw, str(R"({"backend": "reference"})"), &plan))), "");
  auto run = [&](std::vector<int64_t> shape) {
    std::vector<float> x(8, 1), c(4, 1);
    const int64_t sizes[][1] = {{8}, {3}, {4}};
    DenseView inputs[] = {{TN_F32, sizes[0], x.data()},
                          {TN_I64, sizes[1], shape.data()},
                          {TN_F32, sizes[2], c.data()}};
    const DLTensor* in[] = {inputs[0].get(), inputs[1].get(), inputs[2].get()};
    Collected results(ctx_);
    return text_of(Status(tenon_run(plan, in, 3, &results.raw, nullptr)));
  };
  EXPECT_EQ(run({1, 4, 2}), "");
  std::string why = run({2, 2, 2});
  EXPECT_NE(why.find("expected 2 (input 0 (x) axis 1), got 4"), std::string::npos) << why;
  services.eval->release(plan);
}

TEST_F(Operands, OfOtherTypesThanAPlanWasCompiledForAreNotTakenFromItsCache) {
  std::string text =
      "graph {\n  input %x: f64[2]\n  %y: f64[2] = Abs(%x) @abs\n  output y = %y\n}\n";
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "");
  OwnedGraph graph = OwnedGraph::take(raw);
  tn_plan* plan = nullptr;
  ASSERT_EQ(
      text_of(Status(tenon_compile(session_, raw, str(R"({"backend": "reference"})"), &plan))), "");
  auto run = [&](uint32_t dtype) {
    std::vector<double> x(2, -1);
    const int64_t size[] = {2};
    DenseView view(dtype, size, x.data());
    const DLTensor* in[] = {view.get()};
    Collected results(ctx_);
    return text_of(Status(tenon_run(plan, in, 1, &results.raw, nullptr)));
  };
  EXPECT_EQ(run(TN_F64), "");
  EXPECT_NE(run(TN_F32).find("expected f64[2], got f32[2]"), std::string::npos);
  services.eval->release(plan);
}

TEST_F(Operands, OfElementTypesThatARowDoesNotTakeAreRefusedWithThoseThatItTakes) {
  struct Case {
    std::string node, expected;
  };
  const std::string floats = "expected float16, bfloat16, float32, float64, got ";
  for (const Case& one : {
           Case{"%x: i32[1, 2, 3, 3]\n  %y: i32[1, 2, 1, 1] = GlobalAveragePool(%x)",
                floats + "int32"},
           Case{"%x: bool[1, 2, 3, 3]\n  %y: bool[1, 2, 1, 1] = GlobalMaxPool(%x)",
                floats + "bool"},
           Case{"%x: i64[2, 3]\n  %y: i64[2, 3] = LpNormalization(%x)", floats + "int64"},
           Case{"%x: f32[4]\n  %y: f32[4] = TfIdfVectorizer(%x)",
                "expected int32, int64, got float32"},
       }) {
    std::string text = "graph {\n  input " + one.node + " @node\n  output y = %y\n}\n";
    tn_graph* raw = nullptr;
    std::string why = text_of(Status(services.graph->parse(ctx_, str(text), &raw)));
    OwnedGraph graph = OwnedGraph::take(raw);
    EXPECT_NE(why.find(one.expected), std::string::npos) << text << why;
  }
}

TEST(OperandForms, SayWhichTypesACapitalMayBe) {
  OperandForms forms = parse_operands("x: T, w: T, c: float|i32 ; g = group, T = float|i8");
  EXPECT_EQ(forms.capitals.at("T"), "float|i8");
  EXPECT_EQ(forms.operands[2].dtype, "float|i32");
  EXPECT_EQ(forms.binds.size(), 1u);
  EXPECT_TRUE(has_type("float|i8", TN_BF16) && has_type("float|i8", TN_I8));
  EXPECT_FALSE(has_type("float|i8", TN_U8) || has_type("int", TN_I4) || has_type("code", TN_BOOL));
}

TEST(OperandForms, AreReadAsTheyAreWritten) {
  OperandForms forms =
      parse_operands("x: T[n (g c) s..], w: float[o 3 s'..]?, rest: any... ; g = group");
  ASSERT_EQ(forms.operands.size(), 3u);
  EXPECT_EQ(forms.operands[0].axes[1].factors, (std::vector<std::string>{"g", "c"}));
  EXPECT_TRUE(forms.operands[0].axes[2].is_run);
  EXPECT_TRUE(forms.operands[1].is_optional);
  EXPECT_TRUE(forms.operands[1].axes[2].is_free);
  EXPECT_TRUE(forms.operands[2].is_rest);
  ASSERT_EQ(forms.binds.size(), 1u);
  EXPECT_EQ(forms.binds[0].second, "group");
  EXPECT_THROW(parse_operands("x T"), std::invalid_argument);
}

}  // namespace
}  // namespace tenon::test
