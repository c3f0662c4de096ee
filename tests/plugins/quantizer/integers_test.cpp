// SPDX-License-Identifier: Apache-2.0
// quantizer.integers: beside what QuantizeLinear and DequantizeLinear say, and without a float.
#include "plugins/quantizer/text_models.hpp"

namespace tenon::test {
namespace {

using testing::IsEmpty;

class IntegersTest : public TextModels {
 protected:
  // Convolutions with a residual, pools, a mean and a classifier.
  void network() {
    residual_cnn();
    ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {3, 8, 8}, 16, 20)}}), "");
    std::swap(model_, result_);
  }
  // Why it does not run.
  std::string failure(const OwnedGraph& graph, const Floats& x, const char* options) {
    tn_plan* plan = nullptr;
    Status status(services.eval->compile(ctx_, graph.get(), nullptr, 0, str(options), &plan));
    if (!status.ok()) return text_of(std::move(status));
    const std::vector<int64_t> shape{2, 3, 8, 8};
    DenseView tensor(TN_F32, shape, x.data());
    const DLTensor* in[] = {tensor.get()};
    Collected out(ctx_);
    std::string why = text_of(Status(services.eval->run(plan, in, 1, &out.raw, nullptr)));
    services.eval->release(plan);
    return why;
  }
};

constexpr const char* kRefusing = R"({"backend": "reference", "floats": "refuse"})";

TEST_F(IntegersTest, ANetworkGivesWhatItsRoundingsSay) {
  network();
  Floats batch = random(2 * 3 * 64, 21);
  EXPECT_THAT(failure(model_, batch, kRefusing), HasSubstr("conv_a"));
  ASSERT_EQ(apply("quantizer.integers", json::object()), "");

  EXPECT_THAT(report_["float"], IsEmpty());
  EXPECT_THAT(report_["refused"], IsEmpty());
  EXPECT_EQ(count_ops("ConvInteger"), 2U);
  EXPECT_EQ(count_ops("MatMulInteger"), 1U);
  EXPECT_EQ(count_ops("Conv") + count_ops("Gemm") + count_ops("Relu"), 0U);
  EXPECT_EQ(failure(result_, batch, kRefusing), "");
  Floats stated = run(model_, {2, 3, 8, 8}, batch), got = run(result_, {2, 3, 8, 8}, batch);
  ASSERT_EQ(stated.size(), got.size());
  float most = 0;
  for (float y : stated)
    most = std::max(most, std::abs(y));
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], stated[i], 2 * most / 127) << i;  // a step or two
  EXPECT_GE(cosine(stated, got), 0.999);
}

// The numbers of a QuantizeLinear behind one that stores finer: all 256, as floor(M q + 1/2).
TEST_F(IntegersTest, RoundsHalfUp) {
  for (const auto& [to, zero] : {std::pair{0.2F, 0}, {0.25F, 3}, {0.07F, 128}, {3.3F, 10}}) {
    std::string text = cat(R"(graph {
  input %x: f32[256]
  constant %s: f32[] = [0.1]
  constant %z: u8[] = [100]
  constant %t: f32[] = [)",
                           to, R"(]
  constant %w: u8[] = [)",
                           zero, R"(]
  %a: u8[256] = QuantizeLinear(%x, %s, %z) @a
  %b: f32[256] = DequantizeLinear(%a, %s, %z) @b
  %c: u8[256] = QuantizeLinear(%b, %t, %w) @c
  %y: f32[256] = DequantizeLinear(%c, %t, %w) @y
  output y = %y
}
)");
    Floats x;
    for (int i = 0; i < 256; ++i)
      x.push_back(0.1F * static_cast<float>(i - 100));
    const Floats got = run_text(text.c_str(), {256}, x);
    ASSERT_EQ(got.size(), 256U);
    for (int i = 0; i < 256; ++i) {
      const double ratio = (i - 100) * (static_cast<double>(0.1F) / static_cast<double>(to));
      // 31 bits of the multiplier move what is closer to a half than 1e-6.
      const double low = std::clamp(std::floor(ratio + 0.5 - 1e-6) + zero, 0.0, 255.0) - zero;
      const double high = std::clamp(std::floor(ratio + 0.5 + 1e-6) + zero, 0.0, 255.0) - zero;
      const double number = std::nearbyint(got[static_cast<size_t>(i)] / to);
      EXPECT_TRUE(number == low || number == high) << i << " at step " << to << ": " << number;
    }
  }
}

TEST_F(IntegersTest, WhatIsNotIn8BitsIsNamed) {
  model_ = parsed(R"(graph {
  input %x: f32[8]
  constant %s: f32[] = [0.1]
  constant %z: i16[] = [0]
  %a: i16[8] = QuantizeLinear(%x, %s, %z) @a
  %b: f32[8] = DequantizeLinear(%a, %s, %z) @b
  %c: f32[8] = Relu(%b) @c
  %d: i16[8] = QuantizeLinear(%c, %s, %z) @d
  %y: f32[8] = DequantizeLinear(%d, %s, %z) @y
  output y = %y
}
)");
  ASSERT_EQ(apply("quantizer.integers", {{"floats", "allow"}}), "");
  ASSERT_EQ(report_["refused"].size(), 1U);
  EXPECT_EQ(report_["refused"][0]["node"], "b");
  EXPECT_EQ(report_["refused"][0]["why"], "it has not one constant scale and 8 bits");
}

// ReLU6 as exporters write it, behind a factor and a shift for each channel.
TEST_F(IntegersTest, KnownNumbersBesideIt) {
  constexpr size_t kRows = 16, kChannels = 3;
  const Floats x = random(kRows * kChannels, 4, 6), shift{0.5F, -1.25F, 0.001F};
  const Floats got = run_text(R"(graph {
  input %x: f32[16,3]
  constant %s: f32[] = [0.1]
  constant %z: u8[] = [128]
  constant %t: f32[] = [0.025]
  constant %w: u8[] = [0]
  constant %half: f32[] = [0.5]
  constant %third: f32[] = [3]
  constant %shift: f32[3] = [0.5, -1.25, 0.001]
  constant %none: f32[] = [0]
  constant %six: f32[] = [6]
  %a: u8[16,3] = QuantizeLinear(%x, %s, %z) @a
  %b: f32[16,3] = DequantizeLinear(%a, %s, %z) @b
  %c: f32[16,3] = Mul(%half, %b) @c
  %d: f32[16,3] = Div(%c, %third) @d
  %e: f32[16,3] = Add(%d, %shift) @e
  %f: f32[16,3] = Max(%none, %e) @f
  %g: f32[16,3] = Min(%f, %six) @g
  %h: u8[16,3] = QuantizeLinear(%g, %t, %w) @h
  %y: f32[16,3] = DequantizeLinear(%h, %t, %w) @y
  output y = %y
}
)",
                              {16, 3}, x);
  EXPECT_THAT(report_["float"], IsEmpty());
  for (size_t i = 0; i < x.size(); ++i) {
    const double stored = 0.1 * std::clamp(std::nearbyint(x[i] / 0.1), -128.0, 127.0);
    const double want = std::clamp(stored * 0.5 / 3 + double{shift[i % kChannels]}, 0.0, 6.0);
    EXPECT_NEAR(got[i], want, 0.0125 + 1e-5) << x[i];
  }
}

TEST_F(IntegersTest, FunctionsAreTables) {
  const Floats x = random(64, 4, 3);
  const Floats got = run_text(R"(graph {
  input %x: f32[64]
  constant %s: f32[] = [0.05]
  constant %z: u8[] = [128]
  constant %t: f32[] = [0.00392156862]
  constant %w: u8[] = [0]
  %a: u8[64] = QuantizeLinear(%x, %s, %z) @a
  %b: f32[64] = DequantizeLinear(%a, %s, %z) @b
  %c: f32[64] = Sigmoid(%b) @c
  %d: u8[64] = QuantizeLinear(%c, %t, %w) @d
  %y: f32[64] = DequantizeLinear(%d, %t, %w) @y
  output y = %y
}
)",
                              {64}, x);
  EXPECT_EQ(count_ops("Sigmoid"), 0U);
  for (size_t i = 0; i < x.size(); ++i) {
    const double stored = 0.05 * std::clamp(std::nearbyint(x[i] / 0.05), -128.0, 127.0);
    EXPECT_NEAR(got[i], 1 / (1 + std::exp(-stored)), 0.51 / 255) << x[i];
  }
}

TEST_F(IntegersTest, SoftmaxInIntegers) {
  constexpr size_t kRows = 4, kColumns = 16;
  const Floats x = random(kRows * kColumns, 5, 2);
  const Floats got = run_text(R"(graph {
  input %x: f32[4,16]
  constant %s: f32[] = [0.04]
  constant %z: i8[] = [0]
  constant %t: f32[] = [0.00390625]
  constant %w: u8[] = [0]
  %a: i8[4,16] = QuantizeLinear(%x, %s, %z) @a
  %b: f32[4,16] = DequantizeLinear(%a, %s, %z) @b
  %c: f32[4,16] = Softmax(%b) {axis = 1} @c
  %d: u8[4,16] = QuantizeLinear(%c, %t, %w) @d
  %y: f32[4,16] = DequantizeLinear(%d, %t, %w) @y
  output y = %y
}
)",
                              {4, 16}, x);
  EXPECT_EQ(count_ops("Softmax"), 0U);
  for (size_t r = 0; r < kRows; ++r) {
    double sum = 0;
    auto part = [&](size_t c) {
      return std::exp(0.04 * std::clamp(std::nearbyint(x[r * kColumns + c] / 0.04), -128.0, 127.0));
    };
    for (size_t c = 0; c < kColumns; ++c)
      sum += part(c);
    for (size_t c = 0; c < kColumns; ++c)
      EXPECT_NEAR(got[r * kColumns + c], part(c) / sum, 0.51 / 256 + 1e-4);
  }
}

constexpr const char* kWithCumSum = R"(graph {
  input %x: f32[8]
  constant %s: f32[] = [0.04]
  constant %z: u8[] = [128]
  constant %axis: i64[] = [0]
  %a: u8[8] = QuantizeLinear(%x, %s, %z) @a
  %b: f32[8] = DequantizeLinear(%a, %s, %z) @b
  %c: f32[8] = CumSum(%b, %axis) @odd
  %d: u8[8] = QuantizeLinear(%c, %s, %z) @d
  %y: f32[8] = DequantizeLinear(%d, %s, %z) @y
  output y = %y
}
)";

TEST_F(IntegersTest, WhatIsLeftIsNamed) {
  model_ = parsed(kWithCumSum);
  const std::string refused = apply("quantizer.integers", json::object());
  EXPECT_THAT(refused, HasSubstr("odd (CumSum)"));
  EXPECT_THAT(refused, HasSubstr("no integer form"));
  ASSERT_EQ(apply("quantizer.check_integers", {{"floats", "allow"}}), "");
  EXPECT_EQ(report_["float"].dump(),
            R"([{"node":"b","op":"DequantizeLinear"},{"node":"odd","op":"CumSum"},)"
            R"({"node":"d","op":"QuantizeLinear"}])");
  EXPECT_THAT(apply("quantizer.check_integers", json::object()), HasSubstr("odd"));
}

}  // namespace
}  // namespace tenon::test
