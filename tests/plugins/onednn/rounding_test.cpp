// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear means the same wherever it is computed: in a pass of its own, behind a product, a
// convolution or a pool. Halves go to the even step before the zero point is added, and NaN becomes
// the lowest integer.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

constexpr double kExact = 1e-9;  // of 8-bit integers

// "x'0100...'" of so many bytes, of which each `every`-th is 1.
std::string ones(int count, int every) {
  std::string text = "x'";
  for (int i = 0; i < count; ++i)
    text += i % every == 0 ? "01" : "00";
  return text + "'";
}

struct Layer {
  std::string name, source, weights, result, op;
  int n_weights, every;  // of which weights are 1
};
const Layer kLayers[] = {
    {"a product", "9, 32", "32, 32", "9, 32", "MatMul(%dx, %dw)", 32 * 32, 33},
    {"a Gemm", "9, 32", "32, 32", "9, 32", "Gemm(%dx, %dw)", 32 * 32, 33},
    {"pixels", "1, 32, 6, 5", "32, 32, 1, 1", "1, 32, 6, 5", "Conv(%dx, %dw)", 32 * 32, 33},
    {"windows", "1, 32, 6, 5", "32, 32, 3, 3", "1, 32, 4, 3", "Conv(%dx, %dw)", 32 * 32 * 9, 297},
    {"windows of a channel", "1, 32, 6, 5", "32, 1, 3, 3", "1, 32, 4, 3",
     "Conv(%dx, %dw) {group = 32}", 32 * 9, 9},
    {"wide windows of a channel", "1, 32, 8, 8", "32, 1, 5, 5", "1, 32, 4, 4",
     "Conv(%dx, %dw) {group = 32}", 32 * 25, 25},
    {"scattered windows", "1, 8, 6, 5", "8, 8, 3, 3", "1, 8, 8, 7", "ConvTranspose(%dx, %dw)",
     8 * 8 * 9, 81},
};

struct Stored {
  std::string type, zero;
};
const Stored kStored[] = {{"u8", "0"}, {"u8", "3"}, {"u8", "101"},
                          {"i8", "0"}, {"i8", "5"}, {"i8", "-7"}};

class Rounding : public BothBackends {
 protected:
  // `layer` of quantized values by `scale`, then `behind` (which reads %m and gives %t), then a
  // QuantizeLinear to `stored` in steps of `step`.
  static std::string quantized(const Layer& layer,
                               const Stored& stored,
                               const std::string& scale,
                               const std::string& step,
                               const std::string& behind) {
    return "graph {\n  input %x: u8[" + layer.source + "]\n  constant %w: i8[" + layer.weights +
           "] = " + ones(layer.n_weights, layer.every) + "\n  constant %xz: u8[] = [2]\n" +
           "  constant %xs: f32[] = [" + scale + "]\n  constant %ws: f32[] = [1]\n" +
           "  constant %s: f32[] = [" + step + "]\n  constant %z: " + stored.type + "[] = [" +
           stored.zero + "]\n  %dx: f32[" + layer.source +
           "] = DequantizeLinear(%x, %xs, %xz) @dx\n  %dw: f32[" + layer.weights +
           "] = DequantizeLinear(%w, %ws) @dw\n  %m: f32[" + layer.result + "] = " + layer.op +
           " @layer\n" + behind + "  %y: " + stored.type + "[" + layer.result +
           "] = QuantizeLinear(%t, %s, %z) @rounding\n  output y = %y\n}";
  }
};

TEST_F(Rounding, OfHalvesComesBeforeTheZeroPoint) {
  for (const Layer& layer : kLayers)
    for (const Stored& stored : kStored)
      for (const char* op : {"Relu", "Identity", "HardSwish"}) {
        SCOPED_TRACE(layer.name + ", " + stored.type + ", " + stored.zero + ", " + op);
        expect_same(quantized(layer, stored, "0.5", "1",
                              "  %t: f32[" + layer.result + "] = " + op + "(%m) @t\n"),
                    kExact);
      }
}

// Behind a convolution, which leaves channels side by side.
TEST_F(Rounding, OfHalvesOfMeansComesBeforeTheZeroPoint) {
  struct Pool {
    std::string source, ones, result, window;
  };
  const Pool pools[] = {
      {"1, 32, 6, 4", "1, 1", "1, 32, 3, 2", "kernel_shape = ints [2, 2], strides = ints [2, 2]"},
      {"1, 32, 6", "1", "1, 32, 3", "kernel_shape = ints [2], strides = ints [2]"},
      {"1, 32, 2, 6, 4", "1, 1, 1", "1, 32, 2, 6, 2",
       "kernel_shape = ints [1, 1, 2], strides = ints [1, 1, 2]"}};
  for (const Pool& pool : pools)
    for (const Stored& stored : kStored) {
      SCOPED_TRACE(pool.source + ", " + stored.type + ", " + stored.zero);
      const std::string& type = stored.type;
      expect_same("graph {\n  input %x: u8[" + pool.source + "]\n  constant %w: i8[32, 32, " +
                      pool.ones + "] = " + ones(32 * 32, 33) +
                      "\n  constant %two: u8[] = [2]\n  constant %cz: " + type +
                      "[] = [2]\n  constant %s: f32[] = [1]\n  constant %z: " + type + "[] = [" +
                      stored.zero + "]\n  %dx: f32[" + pool.source +
                      "] = DequantizeLinear(%x, %s, %two) @dx\n  %dw: f32[32, 32, " + pool.ones +
                      "] = DequantizeLinear(%w, %s) @dw\n  %c: f32[" + pool.source +
                      "] = Conv(%dx, %dw) @pixels\n  %q: " + type + "[" + pool.source +
                      "] = QuantizeLinear(%c, %s, %cz) @stored\n  %r: f32[" + pool.source +
                      "] = DequantizeLinear(%q, %s, %cz) @real\n  %t: f32[" + pool.result +
                      "] = AveragePool(%r) {" + pool.window + "} @means\n  %y: " + type + "[" +
                      pool.result + "] = QuantizeLinear(%t, %s, %z) @rounding\n  output y = %y\n}",
                  kExact);
    }
}

TEST_F(Rounding, MakesTheLowestIntegerOfNanInAResidual) {
  for (const Layer& layer : kLayers) {
    for (const Stored& stored : kStored) {
      SCOPED_TRACE(layer.name + ", " + stored.type + ", " + stored.zero);
      std::string text = quantized(layer, stored, "0.5", "1",
                                   "  %is_far: bool[" + layer.result +
                                       "] = Greater(%u, %far) @is_far\n  %r: f32[" + layer.result +
                                       "] = Where(%is_far, %nan, %u) @r\n  %t: f32[" +
                                       layer.result + "] = Add(%m, %r) @t\n");
      text.insert(text.find("  constant"),
                  "  input %u: f32[" + layer.result +
                      "]\n  constant %nan: f32[] = x'0000c07f'\n  constant %far: f32[] = [1]\n");
      expect_same(text, kExact);
    }
  }
}

TEST_F(Rounding, MakesTheLowestIntegerOfNanInAllTypes) {
  struct Case {
    std::string type, one;
    double lowest;
  };
  for (const Case& c : {Case{"u8", "01", 0}, Case{"i8", "01", -128}, Case{"u16", "0100", 0},
                        Case{"i16", "0100", -32768}, Case{"u4", "01", 0}, Case{"i4", "01", -8}}) {
    OwnedGraph graph = parse(
        "graph {\n  input %u: f32[3]\n  constant %nan: f32[3] = "
        "x'0000c07f0000c07f0000c0ff'\n  constant %s: f32[] = [0.5]\n  constant %z: " +
        c.type + "[] = x'" + c.one + "'\n  %x: f32[3] = Add(%u, %nan) @x\n  %q: " + c.type +
        "[3] = QuantizeLinear(%x, %s, %z) @q\n  %y: f32[3] = "
        "DequantizeLinear(%q, %s, %z) @y\n  output y = %y\n}");
    for (const char* backend : {"reference", "onednn"}) {
      Outcome got = run(graph, {{"backend", backend}});
      ASSERT_EQ(got.error, "");
      EXPECT_EQ(got.outputs[0], std::vector<double>(3, (c.lowest - 1) / 2)) << backend << c.type;
    }
  }
}

TEST_F(Rounding, OfASumInTinySteps) {
  for (const Layer& layer : kLayers)
    for (const Stored& stored : kStored)
      for (const auto& [scale, step] :
           {std::pair{"100", "1e-36"}, {"100", "3e-38"}, {"100", "1e-40"}, {"1e12", "1e-29"}}) {
        SCOPED_TRACE(layer.name + ", " + stored.type + ", " + stored.zero + ", " + step);
        expect_same(quantized(layer, stored, scale, step,
                              "  %t: f32[" + layer.result + "] = Identity(%m) @t\n"),
                    kExact);
      }
}

// Two steps of 3e38 are infinite.
TEST_F(Rounding, SaturatesWhatBecameInfiniteBetweenEqualScales) {
  for (const char* between : {"Relu(%m)", "Reshape(%m, %shape)"})
    for (const Stored& stored : kStored) {
      SCOPED_TRACE(std::string(between) + ", " + stored.type + ", " + stored.zero);
      expect_same("graph {\n  input %x: " + stored.type +
                      "[2, 3, 4, 5]\n  constant %s: f32[] = [3e38]\n  constant %z: " + stored.type +
                      "[] = [" + stored.zero +
                      "]\n  constant %shape: i64[4] = [2, 3, 4, 5]\n  %m: f32[2, 3, 4, 5] = "
                      "DequantizeLinear(%x, %s, %z) @dx\n  %t: f32[2, 3, 4, 5] = " +
                      between + " @t\n  %y: " + stored.type +
                      "[2, 3, 4, 5] = QuantizeLinear(%t, %s, %z) @y\n  output y = %y\n}",
                  kExact);
    }
}

}  // namespace
}  // namespace tenon::test
