// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers: which graphs become one, what is said of the others, and that the
// numbers are those of the reference. cuBLASLt's part is device_test.cpp's.

#include <cmath>
#include <set>

#include "codegen/compiler.hpp"
#include "emulate.hpp"
#include "kernels/element.cuh"
#include "plan_fixture.hpp"
#include "quantization.hpp"

namespace tenon::cuda {
namespace {

using test::Plans;

std::string constant(const std::string& name,
                     const std::string& type,
                     const std::string& dims,
                     int64_t count,
                     int first,
                     int step) {
  std::string text = cat("  constant %", name, ": ", type, "[", dims, "] = [");
  for (int64_t i = 0; i < count; ++i)
    text += cat(i ? ", " : "", (first + step * i) % 97 - (type == "i8" ? 48 : 0));
  return text + "]\n";
}

// y = relu(x w + b) of numbers of `type`, weights with a scale per column; the result quantized.
std::string layer(const std::string& type, int zero) {
  return cat("graph {\n  input %x: f32[2, 3, 16]\n", constant("w", "i8", "16, 8", 128, 5, 31),
             "  constant %sx: f32[] = [0.03125]\n  constant %zx: ", type, "[] = [", zero, "]\n",
             "  constant %sw: f32[8] = [0.5, 0.25, 0.125, 0.5, 0.25, 1, 0.5, 0.75]\n",
             "  constant %zw: i8[8] = [0, 0, 0, 0, 0, 0, 0, 0]\n  constant %sy: f32[] = [0.5]\n",
             "  constant %b: f32[8] = [1, 2, 3, 4, 5, 6, 7, -800]\n", "  %q: ", type,
             "[2, 3, 16] = QuantizeLinear(%x, %sx, %zx) @quantize\n",
             "  %d: f32[2, 3, 16] = DequantizeLinear(%q, %sx, %zx) @left\n",
             "  %v: f32[16, 8] = DequantizeLinear(%w, %sw, %zw) {axis = 1} @right\n",
             "  %m: f32[2, 3, 8] = MatMul(%d, %v) @product\n",
             "  %s: f32[2, 3, 8] = Add(%m, %b) @bias\n  %r: f32[2, 3, 8] = Relu(%s) @relu\n",
             "  %y: ", type, "[2, 3, 8] = QuantizeLinear(%r, %sy, %zx) @again\n",
             "  output y = %y\n  output r = %r\n}\n");
}

const Product* product_of(const Plan& plan) {
  for (const Step& step : plan.steps) {
    if (const Product* product = std::get_if<Product>(&step.work)) return product;
  }
  return nullptr;
}

TEST_F(Plans, MultiplySignedBytes) {
  Plan plan = plan_of(layer("i8", 0));

  // Quantize; product; rescale, bias and ReLU; quantize.
  EXPECT_EQ(kernels(plan),
            (std::vector<std::string>{"pointwise", "cublaslt", "pointwise", "pointwise"}));
  const Product* product = product_of(plan);
  ASSERT_TRUE(product);
  EXPECT_EQ(product->dtype, TN_I8);
  EXPECT_EQ(product->out_dtype, TN_I32);
  EXPECT_TRUE(product->transpose_b);
  EXPECT_EQ(product->m, 6);
  EXPECT_TRUE(plan.notes.empty());
  check(plan);
}

TEST_F(Plans, MultiplyUnsignedBytesWithAZeroPoint) {
  Plan plan = plan_of(layer("u8", 100));

  ASSERT_TRUE(product_of(plan));
  EXPECT_EQ(product_of(plan)->dtype, TN_I8);
  EXPECT_EQ(plan.steps.size(), 4u);
  check(plan);
}

// gemm with a transposed weight, a matrix of its own to add, and factors.
TEST_F(Plans, MultiplyBytesInGemm) {
  Plan plan =
      plan_of(cat("graph {\n  input %q: u8[4, 16]\n  input %c: f32[4, 8]\n",
                  constant("w", "u8", "8, 16", 128, 3, 29),
                  "  constant %sx: f32[] = [0.0625]\n  constant %zx: u8[] = [7]\n"
                  "  constant %sw: f32[8] = [0.5, 0.25, 0.125, 0.5, 0.25, 1, 0.5, 0.75]\n"
                  "  constant %zw: u8[8] = [128, 128, 128, 128, 128, 128, 128, 128]\n"
                  "  %d: f32[4, 16] = DequantizeLinear(%q, %sx, %zx) @left\n"
                  "  %v: f32[8, 16] = DequantizeLinear(%w, %sw, %zw) {axis = 0} @right\n"
                  "  %y: f32[4, 8] = Gemm(%d, %v, %c) {transB = 1, alpha = 0.5, beta = 2.0} @gemm\n"
                  "  output y = %y\n}\n"));

  ASSERT_TRUE(product_of(plan));
  EXPECT_EQ(product_of(plan)->dtype, TN_I8);
  check(plan);
}

// Both operands are computed, in batches, as attention has them.
TEST_F(Plans, MultiplyBytesInBatches) {
  Plan plan = plan_of(R"(graph {
  input %q: i8[2, 3, 4, 8]
  input %k: u8[2, 3, 8, 12]
  constant %s: f32[] = [0.0625]
  constant %zero: i8[] = [0]
  constant %middle: u8[] = [128]
  %a: f32[2, 3, 4, 8] = DequantizeLinear(%q, %s, %zero) @left
  %b: f32[2, 3, 8, 12] = DequantizeLinear(%k, %s, %middle) @right
  %y: f32[2, 3, 4, 12] = MatMul(%a, %b) @scores
  output y = %y
}
)");
  const Product* product = product_of(plan);
  ASSERT_TRUE(product);
  EXPECT_EQ(product->dtype, TN_I8);
  EXPECT_EQ(product->batch, 6);
  EXPECT_EQ(kernels(plan),
            (std::vector<std::string>{"pointwise", "copy_1", "cublaslt", "pointwise"}));
  check(plan);
}

std::string of_floats(const std::string& left, const std::string& right) {
  return cat("graph {\n  input %x: f32[4, 16]\n  input %v: f32[16, 16]\n",
             "  constant %s: f32[] = [0.0625]\n  constant %t: f32[] = [0.5]\n  %q: ", left,
             "[4, 16] = QuantizeLinear(%x, %s) {output_dtype = dtype ", left,
             "} @low_precision\n  %w: ", right,
             "[16, 16] = QuantizeLinear(%v, %t) {output_dtype = dtype ", right, "} @other\n",
             "  %a: f32[4, 16] = DequantizeLinear(%q, %s) @left\n",
             "  %b: f32[16, 16] = DequantizeLinear(%w, %t) @right\n",
             "  %y: f32[4, 16] = MatMul(%a, %b) @product\n  output y = %y\n}\n");
}

TEST_F(Plans, MultiplyFloatsOfEightBits) {
  for (auto [left, right] : {std::pair("f8e4m3fn", "f8e4m3fn"), {"f8e5m2", "f8e4m3fn"}}) {
    SCOPED_TRACE(left);
    Plan plan = plan_of(of_floats(left, right));
    const Product* product = product_of(plan);
    ASSERT_TRUE(product);
    EXPECT_TRUE(is_float8(product->dtype));
    EXPECT_EQ(product->b_dtype, kF8E4M3);
    EXPECT_EQ(product->out_dtype, TN_F32);
    EXPECT_TRUE(plan.notes.empty());
    check(plan);
  }
}

TEST_F(Plans, OfEightBitsCompileForTwoArchitectures) {
  if (Result<CompilerVersion> there = compiler_version(); !there.ok()) {
    GTEST_SKIP() << there.status().message();
  }
  std::set<std::string> sources;
  for (const std::string& text :
       {layer("i8", 0), layer("u8", 100), of_floats("f8e4m3fn", "f8e4m3fn"),
        of_floats("f8e5m2", "f8e4m3fn")}) {
    Plan plan = plan_of(text);
    for (const Step& step : plan.steps) {
      if (const Launch* launch = std::get_if<Launch>(&step.work)) sources.insert(launch->source);
    }
  }
  std::string all;
  for (const std::string& source : sources)
    all += source;
  for (int architecture : {80, 90}) {
    Result<std::string> made = compile_text(all, architecture);
    EXPECT_TRUE(made.ok()) << made.status().message();
  }
}

TEST_F(Plans, SayWhichProductsAreNotOfEightBits) {
  Plan old = plan_of(of_floats("f8e4m3fn", "f8e4m3fn"), 80);
  ASSERT_EQ(old.notes.size(), 1u);
  EXPECT_EQ(old.notes[0],
            "node product: its 8-bit operands are multiplied as floats: 8-bit floats need compute "
            "capability 8.9 or newer, the device has 8.0");
  EXPECT_EQ(product_of(old)->dtype, TN_F32);
  check(old);

  Plan both = plan_of(of_floats("f8e5m2", "f8e5m2"));
  ASSERT_EQ(both.notes.size(), 1u);
  EXPECT_NE(both.notes[0].find("both operands are float8_e5m2"), std::string::npos);

  EXPECT_EQ(product_of(plan_of(R"(graph {
  input %q: i8[4, 6]
  input %k: i8[6, 8]
  constant %s: f32[] = [0.0625]
  %a: f32[4, 6] = DequantizeLinear(%q, %s) @left
  %b: f32[6, 8] = DequantizeLinear(%k, %s) @right
  %y: f32[4, 8] = MatMul(%a, %b) @product
  output y = %y
}
)"))
                ->dtype,
            TN_F32);
}

// One row of u8, and weights of which all are the lowest of i8: the largest sums that there are.
std::string long_sums(int64_t terms, float scale) {
  std::string weights;
  for (int64_t i = 0; i < 4 * terms; ++i)
    weights += "80";
  return cat("graph {\n  input %q: u8[1, ", terms, "]\n  constant %w: i8[", terms, ", 4] = x'",
             weights, "'\n  constant %s: f32[] = [", scale, "]\n  constant %z: u8[] = [255]\n",
             "  %a: f32[1, ", terms, "] = DequantizeLinear(%q, %s, %z) @left\n  %b: f32[", terms,
             ", 4] = DequantizeLinear(%w, %s) @right\n",
             "  %y: f32[1, 4] = MatMul(%a, %b) @product\n  output y = %y\n}\n");
}

TEST_F(Plans, MultiplyAsFloatsWhatAnInt32OrAScaleDoesNotHold) {
  struct {
    int64_t terms;
    float scale;
    unsigned char stored;
    std::string why;
  } const cases[] = {{65792, 0.5f, 0, ""},
                     {65796, 0.5f, 0, "more terms than an int32 holds"},
                     {8, 1e30f, 255, "scales whose product float32 does not hold"},
                     {8, 1e-20f, 0, "scales whose product float32 does not hold"}};
  for (const auto& [terms, scale, stored, why] : cases) {
    SCOPED_TRACE(cat(terms, " terms, scale ", scale));
    Plan plan = plan_of(long_sums(terms, scale));
    std::vector<std::string> expected;
    if (!why.empty())
      expected = {cat("node product: its 8-bit operands are multiplied as floats: ", why)};
    EXPECT_EQ(plan.notes, expected);
    std::vector<test::Bytes> inputs{test::Bytes(static_cast<size_t>(terms), stored)};
    check_with({[&](int) { return inputs; }}, plan, graph_.get(), 1, 2e-5);
  }
}

TEST_F(Plans, MultiplyAsFloatsWhereCublasltHasNoAlgorithm) {
  graph_ = parse(layer("i8", 0));

  Target target{ctx_};
  target.why_no_product = [](const Product& p) {
    bool is_low_precision = p.dtype == TN_I8 && p.b_dtype == TN_I8 && p.out_dtype == TN_I32;
    return is_low_precision && p.transpose_b && p.m == 6 && p.n == 8 ? "no algorithm for it" : "";
  };
  Result<Plan> plan = lower(*import_graph(graph_.get()), target);

  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->notes.size(), 1u);
  EXPECT_NE(plan->notes[0].find("no algorithm"), std::string::npos);
  EXPECT_EQ(product_of(*plan)->dtype, TN_F32);
  check(*plan);
}

// All values of both types, there and back, and what lies between them.
TEST(EightBitFloats, RoundAsTheCpuDoes) {
  tn::F8E4M3 one = tn::Convert<tn::F8E4M3>::from(1.0f);
  EXPECT_EQ(one.bits, 0x38);
  for (unsigned code = 0; code < 256; ++code) {
    auto byte = static_cast<unsigned char>(code);
    float a = tn::value(tn::F8E4M3{byte}), b = tn::value(tn::F8E5M2{byte});
    if (!std::isnan(a)) {
      EXPECT_EQ(tn::Convert<tn::F8E4M3>::from(a).bits, code);
    }
    if (std::isfinite(b)) {
      EXPECT_EQ(tn::Convert<tn::F8E5M2>::from(b).bits, code);
    }
  }
  EXPECT_EQ(tn::value(tn::Convert<tn::F8E4M3>::from(1e9f)), 448);
  EXPECT_EQ(tn::value(tn::Convert<tn::F8E5M2>::from(-INFINITY)), -57344);
  EXPECT_TRUE(std::isnan(tn::value(tn::Convert<tn::F8E4M3>::from(NAN))));
  EXPECT_EQ(tn::value(tn::Convert<tn::F8E4M3>::from(17.0f)), 16);  // between 16 and 18: to the even
  EXPECT_EQ(tn::value(tn::Convert<tn::F8E4M3>::from(19.0f)), 20);
}

}  // namespace
}  // namespace tenon::cuda
