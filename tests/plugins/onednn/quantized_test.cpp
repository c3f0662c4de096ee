// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit quantized values that use all of their range, where adding pairs of products in
// 16 bits saturates: every sum has to be exact, on every CPU. And what `precision=bf16` says it
// did.

#include "plugins/onednn/both_backends.hpp"
#include "plugins/onednn/cpu_has.hpp"

namespace tenon::test {
namespace {

// "%name: i8[dims] = x'..'", all quantized values near the ends of the range.
std::string quantized(const std::string& name, const std::string& dims, int count, int most = 127) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::mt19937 random(5);
  std::string text = "  constant %" + name + ": i8[" + dims + "] = x'";
  for (int i = 0; i < count; ++i) {
    const int size = most - static_cast<int>(random() % 20);
    const auto number = static_cast<uint8_t>(random() % 3 == 0 ? -size : size);
    text += kDigits[number / 16];
    text += kDigits[number % 16];
  }
  return text + "'\n";
}

// "%name: f32[count]": 0.5, 1, 2, 0.5, ...
std::string factors(const std::string& name, int count) {
  constexpr const char* kBytes[] = {"0000003f", "0000803f", "00000040"};
  std::string text = "  constant %" + name + ": f32[" + std::to_string(count) + "] = x'";
  for (int i = 0; i < count; ++i)
    text += kBytes[i % 3];
  return text + "'\n";
}

// x, quantized so that many quantized values are 255, as %dx; %s, %z: its parameters.
std::string quantized_input(const std::string& dims, bool is_signed = false) {
  const std::string type = is_signed ? "i8" : "u8";
  return "graph {\n  input %x: f32[" + dims +
         "]\n  constant %s: f32[] = [0.006]\n  constant %z: " + type + "[] = [" +
         (is_signed ? "-100" : "40") + "]\n  %q: " + type + "[" + dims +
         "] = QuantizeLinear(%x, %s, %z) @quantize\n  %dx: f32[" + dims +
         "] = DequantizeLinear(%q, %s, %z) @dequantize\n";
}

class QuantizedValues : public BothBackends {};

TEST_F(QuantizedValues, OfAMatrixWithOneScaleEachColumn) {
  expect_same(quantized_input("37, 96") + quantized("w", "96, 21", 96 * 21) +
              "  constant %ws: f32[21] = [" +
              [] {
                std::string text = "0.01";
                for (int i = 1; i < 21; ++i)
                  text += ", 0.0" + std::to_string(i + 10);
                return text;
              }() +
              R"(]
  constant %b: f32[21] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -11, -12, 13, 14, 15, 16, 17, 18, 19, 20, 21]
  %dw: f32[96, 21] = DequantizeLinear(%w, %ws) {axis = 1} @weights
  %m: f32[37, 21] = MatMul(%dx, %dw) @product
  %a: f32[37, 21] = Add(%m, %b) @bias
  %y: f32[37, 21] = Relu(%a) @relu
  output y = %y
})");
}

TEST_F(QuantizedValues, OfAGemmThatIsRoundedAgain) {
  for (int most : {127, 64})
    for (bool is_signed : {false, true})
      expect_same(
          quantized_input("9, 63", is_signed) + quantized("w", "40, 63", 40 * 63, most) + R"(
  constant %ws: f32[] = [0.02]
  constant %ys: f32[] = [1.5]
  constant %yz: u8[] = [99]
  %dw: f32[40, 63] = DequantizeLinear(%w, %ws) @weights
  %m: f32[9, 40] = Gemm(%dx, %dw) {transB = 1} @product
  %g: f32[9, 40] = Gelu(%m) @gelu
  %c: u8[9, 40] = QuantizeLinear(%m, %ys, %yz) @quantized
  %d: f32[9, 40] = DequantizeLinear(%c, %ys, %yz) @real
  output y = %d
  output g = %g
})",
          1.5 / 255);
}

TEST_F(QuantizedValues, OfConvolutionsOfAllKinds) {
  struct Case {
    std::string source, weights, result, attributes;
    int count;
  };
  const Case cases[] = {
      {"2, 16, 9, 7", "24, 16, 3, 3", "2, 24, 5, 4",
       "strides = ints [2, 2], pads = ints [1, 1, 1, 1]", 24 * 144},
      {"1, 32, 6, 5", "16, 32, 1, 1", "1, 16, 6, 5", "strides = ints [1, 1]", 16 * 32},
      {"2, 24, 8, 8", "32, 12, 3, 3", "2, 32, 8, 8", "group = 2, pads = ints [1, 1, 1, 1]",
       32 * 108},
      {"1, 12, 40", "9, 12, 5", "1, 9, 32", "dilations = ints [2]", 9 * 60},
      {"1, 20, 9, 9", "20, 1, 3, 3", "1, 20, 9, 9", "group = 20, pads = ints [1, 1, 1, 1]", 20 * 9},
      {"1, 16, 9, 9", "3, 16, 3, 3", "1, 3, 7, 7", "group = 1", 3 * 144},
  };
  for (const Case& c : cases) {
    for (bool is_signed : {false, true}) {
      for (int most : {127, 64}) {  // of seven bits, sums are exact without VNNI too
        const std::string weights = quantized("w", c.weights, c.count, most);
        expect_same(quantized_input(c.source, is_signed) + weights +
                    "  constant %ws: f32[] = [0.02]\n  %dw: f32[" + c.weights +
                    "] = DequantizeLinear(%w, %ws) @weights\n  %m: f32[" + c.result +
                    "] = Conv(%dx, %dw) {" + c.attributes + "} @conv\n  %y: f32[" + c.result +
                    "] = Relu(%m) @relu\n  output y = %y\n}");
      }
    }
  }
}

// Few channels with a zero point to 64 or 96: rows of the result in bands, a thread each.
TEST_F(QuantizedValues, OfFirstConvolutionsInBands) {
  struct Case {
    std::string source, weights, result, attributes;
    int count;
    bool in_bands = false;
  };
  const Case cases[] = {
      {"1, 3, 23, 22", "64, 3, 3, 3", "1, 64, 11, 10", "strides = ints [2, 2]", 64 * 27, true},
      {"1, 3, 16, 17", "96, 3, 3, 3", "1, 96, 8, 9",
       "strides = ints [2, 2], pads = ints [1, 1, 1, 1]", 96 * 27, true},
      {"1, 3, 19, 9", "64, 3, 3, 3", "1, 64, 9, 4",
       "strides = ints [2, 2], dilations = ints [2, 1], pads = ints [1, 0, 2, 0]", 64 * 27, true},
      {"1, 1, 13, 12", "64, 1, 2, 2", "1, 64, 4, 6", "strides = ints [3, 2]", 64 * 4, true},
      {"1, 3, 12, 12", "64, 3, 3, 3", "1, 64, 12, 12", "pads = ints [1, 1, 1, 1]", 64 * 27},
      {"2, 3, 12, 12", "64, 3, 3, 3", "2, 64, 5, 5", "strides = ints [2, 2]", 64 * 27},
  };
  for (const Case& c : cases) {
    const std::string text = quantized_input(c.source) + quantized("w", c.weights, c.count) +
                             "  constant %ws: f32[] = [0.02]\n  constant %ys: f32[] = [0.01]\n"
                             "  constant %yz: u8[] = [7]\n  %dw: f32[" +
                             c.weights + "] = DequantizeLinear(%w, %ws) @weights\n  %m: f32[" +
                             c.result + "] = Conv(%dx, %dw) {" + c.attributes +
                             "} @conv\n  %r: f32[" + c.result + "] = Relu(%m) @relu\n  %k: u8[" +
                             c.result + "] = QuantizeLinear(%r, %ys, %yz) @quantized\n  %y: f32[" +
                             c.result +
                             "] = DequantizeLinear(%k, %ys, %yz) @real\n  output y = %y\n}";
    expect_same(text, 1.01 / 248);
    // Where the CPU has AMX, its convolutions would be chosen first.
    json options{
        {"backend", "onednn"}, {"threads", 1}, {"without", {"amx planes", "amx windows", "amx"}}};
    const Outcome whole = run(parse(text), options);
    options["threads"] = 2;
    const Outcome got = run(parse(text), options);
    EXPECT_EQ(got.outputs, whole.outputs);
    if (!has_vnni()) continue;
    EXPECT_EQ(got.plan.dump().find("bands by jit_int8") != std::string::npos, c.in_bands)
        << c.source;
  }
}

TEST_F(QuantizedValues, OfTransposedConvolutions) {
  struct Case {
    std::string source, weights, result, attributes;
    int channels, count;
  };
  const Case cases[] = {
      {"2, 32, 6, 5", "32, 16, 2, 2", "2, 16, 12, 10", "strides = ints [2, 2]", 16, 32 * 64},
      {"1, 16, 7, 6", "16, 24, 3, 3", "1, 24, 13, 11",
       "strides = ints [2, 2], pads = ints [1, 1, 1, 1]", 24, 16 * 24 * 9},
      {"1, 20, 9, 9", "20, 7, 3, 3", "1, 7, 11, 11", "strides = ints [1, 1]", 7, 20 * 63},
      {"1, 12, 20", "12, 18, 4", "1, 18, 40", "strides = ints [2], pads = ints [1, 1]", 18, 864},
      // No window reaches the last column, or two of three rows.
      {"1, 8, 3, 3", "8, 16, 1, 4", "1, 16, 3, 9",
       "strides = ints [1, 2], output_padding = ints [0, 1]", 16, 8 * 64},
      {"1, 20, 3, 7", "20, 17, 1, 3", "1, 17, 7, 19",
       "strides = ints [3, 3], pads = ints [0, 0, 0, 2]", 17, 20 * 51},
  };
  for (const Case& c : cases) {
    for (bool is_signed : {false, true}) {
      std::string scales = "0.01", bias = "0.5";
      for (int i = 1; i < c.channels; ++i) {
        scales += ", 0.0" + std::to_string(i + 10);
        bias += ", " + std::to_string(i % 5);
      }
      const std::string n = std::to_string(c.channels);
      expect_same(quantized_input(c.source, is_signed) + quantized("w", c.weights, c.count) +
                      "  constant %ws: f32[" + n + "] = [" + scales + "]\n  constant %b: f32[" + n +
                      "] = [" + bias +
                      "]\n  constant %ys: f32[] = [0.5]\n  constant %yz: u8[] = [99]\n  %dw: f32[" +
                      c.weights + "] = DequantizeLinear(%w, %ws) {axis = 1} @weights\n  %t: f32[" +
                      c.result + "] = ConvTranspose(%dx, %dw, %b) {" + c.attributes +
                      "} @transposed\n  %k: u8[" + c.result +
                      "] = QuantizeLinear(%t, %ys, %yz) @quantized\n  %y: f32[" + c.result +
                      "] = DequantizeLinear(%k, %ys, %yz) @real\n  %r: f32[" + c.result +
                      "] = Relu(%y) @relu\n  output r = %r\n}",
                  1.01 / 128);
    }
  }
}

// A residual, an activation and an affine step, rounded at the end.
TEST_F(QuantizedValues, WithTheirEpilogues) {
  for (const char* activation : {"HardSwish", "Gelu", "Sigmoid", "Tanh", "Softplus"}) {
    expect_same(
        quantized_input("2, 24, 6, 5") + quantized("w", "24, 24, 3, 3", 24 * 24 * 9) + R"(
  constant %ws: f32[] = [0.0005]
  constant %a: f32[] = [1.5]
  constant %b: f32[24, 1, 1] = x')" +
            [] {
              std::string bytes;  // 1.0, 2.0, ... alternate
              for (int i = 0; i < 24; ++i)
                bytes += i % 2 == 0 ? "0000803f" : "00000040";
              return bytes;
            }() +
            R"('
  constant %ys: f32[] = [0.03]
  constant %yz: u8[] = [90]
  %dw: f32[24, 24, 3, 3] = DequantizeLinear(%w, %ws) @weights
  %c: f32[2, 24, 6, 5] = Conv(%dx, %dw) {pads = ints [1, 1, 1, 1]} @conv
  %h: f32[2, 24, 6, 5] = )" +
            activation + R"((%c) @activation
  %m: f32[2, 24, 6, 5] = Mul(%h, %a) @scaled
  %r: f32[2, 24, 6, 5] = Add(%m, %dx) @residual
  %k: f32[2, 24, 6, 5] = Add(%r, %b) @channels
  %q2: u8[2, 24, 6, 5] = QuantizeLinear(%k, %ys, %yz) @quantized
  %y: f32[2, 24, 6, 5] = DequantizeLinear(%q2, %ys, %yz) @real
  output y = %y
})",
        1.01 / 165);
  }
}

// One channel a group: numbers of channels that fill no vector, with a residual that is not
// quantized.
TEST_F(QuantizedValues, OfDepthwiseConvolutionsWithAResidual) {
  for (int channels : {2, 4, 8, 12, 15}) {
    const std::string n = std::to_string(channels), dims = "2, " + n + ", 6, 5";
    expect_same(quantized_input(dims) + quantized("w", n + ", 1, 3, 3", channels * 9) +
                "  input %r: f32[" + dims + "]\n  constant %ws: f32[] = [0.02]\n  %dw: f32[" + n +
                ", 1, 3, 3] = DequantizeLinear(%w, %ws) @weights\n  %c: f32[" + dims +
                "] = Conv(%dx, %dw) {group = " + n +
                ", pads = ints [1, 1, 1, 1]} @conv\n  %y: f32[" + dims +
                "] = Add(%c, %r) @residual\n  output y = %y\n}");
  }
}

// A piece of one channel, in another type and scale than what it is joined with.
TEST_F(QuantizedValues, JoinedWithOneChannel) {
  expect_same(quantized_input("2, 1, 6, 5") + quantized("w", "7, 1, 3, 3", 7 * 9) + R"(
  constant %ws: f32[] = [0.02]
  constant %ys: f32[] = [0.09]
  constant %yz: u8[] = [128]
  %dw: f32[7, 1, 3, 3] = DequantizeLinear(%w, %ws) @weights
  %c: f32[2, 7, 6, 5] = Conv(%dx, %dw) {pads = ints [1, 1, 1, 1]} @conv
  %j: f32[2, 9, 6, 5] = Concat(%c, %dx, %x) {axis = 1} @join
  %k: u8[2, 9, 6, 5] = QuantizeLinear(%j, %ys, %yz) @quantized
  %y: f32[2, 9, 6, 5] = DequantizeLinear(%k, %ys, %yz) @real
  output y = %y
})",
              1.01 / 128);
}

// As SmoothQuant leaves a transformer: a factor for each channel in front of each quantization.
TEST_F(QuantizedValues, TakeFactorsOfTheirChannelsAlong) {
  const std::string text = R"(graph {
  input %x: f32[40, 64]
  constant %s: f32[] = [0.02]
  constant %z: u8[] = [120]
  constant %ws: f32[] = [0.0008]
  constant %ys: f32[] = [0.006]
  constant %yz: u8[] = [40]
)" + factors("g", 64) + factors("f", 64) +
                           factors("h", 96) + quantized("w", "64, 96", 64 * 96) + R"(
  %n: f32[40, 64] = LayerNormalization(%x, %g) {axis = -1} @norm
  %nf: f32[40, 64] = Mul(%n, %f) @norm_scaled
  %q: u8[40, 64] = QuantizeLinear(%nf, %s, %z) @quantize
  %d: f32[40, 64] = DequantizeLinear(%q, %s, %z) @dequantize
  %dw: f32[64, 96] = DequantizeLinear(%w, %ws) @weights
  %m: f32[40, 96] = MatMul(%d, %dw) @product
  %a: f32[40, 96] = Gelu(%m) @gelu
  %af: f32[40, 96] = Mul(%a, %h) @gelu_scaled
  %p: u8[40, 96] = QuantizeLinear(%af, %ys, %yz) @quantized
  %y: f32[40, 96] = DequantizeLinear(%p, %ys, %yz) @real
  output y = %y
  output n = %n
})";
  expect_same(text, 0.012);  // a step of the result
  if (!has_avx512()) return;
  OwnedGraph graph = parse(text);
  const Outcome got = run(graph, {{"backend", "onednn"}});
  ASSERT_EQ(got.error, "");
  EXPECT_EQ(got.plan["partitions"][0]["steps"], 3) << got.plan.dump(2);
}

TEST_F(QuantizedValues, OfAPooledConstantWithOneScaleEachIndex) {
  for (const char* pool : {"AveragePool", "MaxPool"})
    expect_same("graph {\n  input %x: f32[3, 1, 2, 2]\n" + quantized("w", "3, 1, 3, 3", 27) +
                    factors("ws", 3) + R"(  constant %s: f32[] = [2.0]
  constant %z: i8[] = [-20]
  %d: f32[3, 1, 3, 3] = DequantizeLinear(%w, %ws) {axis = 0} @weights
  %p: f32[3, 1, 2, 2] = )" +
                    pool +
                    R"((%d) {kernel_shape = ints [2, 2]} @pool
  %q: i8[3, 1, 2, 2] = QuantizeLinear(%p, %s, %z) @quantize
  %b: f32[3, 1, 2, 2] = DequantizeLinear(%q, %s, %z) @dequantize
  %y: f32[3, 1, 2, 2] = Add(%x, %b) @sum
  output y = %y
})",
                0.02);  // one step of the scale
}

TEST_F(QuantizedValues, OfTwoActivations) {
  expect_same(quantized_input("2, 3, 24, 32") + R"(
  input %v: f32[2, 3, 32, 24]
  %qv: u8[2, 3, 32, 24] = QuantizeLinear(%v, %s, %z) @quantize_v
  %dv: f32[2, 3, 32, 24] = DequantizeLinear(%qv, %s, %z) @dequantize_v
  %y: f32[2, 3, 24, 24] = MatMul(%dx, %dv) @product
  output y = %y
})");
}

TEST_F(QuantizedValues, OfBatchesOfIntegerProducts) {
  expect_same(quantized_input("4, 2, 5, 70") + R"(
  input %v: f32[2, 70, 18]
  %qv: u8[2, 70, 18] = QuantizeLinear(%v, %s, %z) @quantize_v
  %y: i32[4, 2, 5, 18] = MatMulInteger(%q, %qv, %z, %z) @product
  output y = %y
})",
              0);
}

TEST_F(QuantizedValues, PlansSayInWhichPrecisionTheyRun) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[64, 300]
  input %w: f32[300, 64]
  %y: f32[64, 64] = MatMul(%x, %w) @product
  output y = %y
})");
  const Outcome want = run(graph, {{"backend", "reference"}});
  const Outcome got = run(graph, {{"backend", "onednn"}, {"precision", "bf16"}});
  ASSERT_EQ(want.error + got.error, "");
  const std::string precision = got.plan["partitions"][0]["precision"];
  if (has_avx512()) {
    EXPECT_EQ(precision, "bf16");
    expect_near(got.outputs[0], want.outputs[0], 0.02);
  } else {
    EXPECT_EQ(precision, "fp32: this CPU has no bf16 products (they need AVX-512)");
    expect_near(got.outputs[0], want.outputs[0], 2e-5);
  }
}

TEST_F(QuantizedValues, EachPlanWarnsOnceOfAPrecisionThatThisCpuLacks) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[4, 4]
  %y: f32[4, 4] = MatMul(%x, %x) @product
  output y = %y
})");
  std::vector<std::string> warnings;
  auto keep = [](void* all, uint32_t level, tn_str, tn_str message) {
    if (level == TN_LOG_WARNING)
      static_cast<std::vector<std::string>*>(all)->emplace_back(view(message));
  };
  tenon_on_log(session_, keep, &warnings);
  for (int plan = 0; plan < 2; ++plan)
    run(graph, {{"backend", "onednn"}, {"precision", "bf16"}});
  tenon_on_log(session_, nullptr, nullptr);
  const std::string why =
      "precision=bf16 keeps floating-point values in fp32: this CPU has no bf16 products (they "
      "need AVX-512)";
  EXPECT_EQ(warnings, std::vector<std::string>(has_avx512() ? 0 : 2, why));
}

}  // namespace
}  // namespace tenon::test
