// SPDX-License-Identifier: Apache-2.0
// What only moves or maps 8-bit quantized values never makes floats of them, and gives the
// reference's integers.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

constexpr double kExact = 1e-9;

struct Stored {
  std::string type, zero;
};
const Stored kStored[] = {{"u8", "0"}, {"u8", "131"}, {"i8", "0"}, {"i8", "-7"}};

// "x'00010203...'" of so many bytes.
std::string all_bytes(int count) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "x'";
  for (int i = 0; i < count; ++i) {
    text += kDigits[i / 16 % 16];
    text += kDigits[i % 16];
  }
  return text + "'";
}

class Bytes : public BothBackends {
 protected:
  // x, a value of `dims`, plus an input of zeros, so that nothing is folded; then `op`, which reads
  // %d and gives %t, between equal scales.
  static std::string between(const Stored& stored,
                             const std::string& dims,
                             const std::string& result,
                             const std::string& op) {
    const std::string& type = stored.type;
    return "graph {\n  input %x: " + type + "[" + dims +
           "]\n  constant %s: f32[] = [0.25]\n  constant %z: " + type + "[] = [" + stored.zero +
           "]\n  %d: f32[" + dims + "] = DequantizeLinear(%x, %s, %z) @dx\n" + op +
           "  %y: " + type + "[" + result +
           "] = QuantizeLinear(%t, %s, %z) @stored\n  output y = %y\n}";
  }

  void expect_kernels(const std::string& text, const std::string& kernel) {
    SCOPED_TRACE(text);
    expect_same(text, kExact);
    const OwnedGraph graph = parse(text);
    const json plan = run(graph, {{"backend", "onednn"}, {"threads", 2}}).plan;
    const std::string kernels = plan["partitions"][0]["kernels"].dump();
    EXPECT_NE(kernels.find(kernel), std::string::npos) << kernels;
    EXPECT_EQ(kernels.find("convert"), std::string::npos) << kernels;
  }
};

TEST_F(Bytes, OfOneOperandAreLookedUp) {
  const std::string ops[] = {
      "  %t: f32[3, 5, 7] = Relu(%d) @t\n", "  %t: f32[3, 5, 7] = Abs(%d) @t\n",
      "  %t: f32[3, 5, 7] = HardSwish(%d) @t\n",
      "  %a: f32[3, 5, 7] = Neg(%d) @a\n  %t: f32[3, 5, 7] = Add(%a, %d) @t\n",
      "  %a: f32[3, 5, 7] = HardSigmoid(%d) @a\n  %q: u8[3, 5, 7] = QuantizeLinear(%a, %s) @q\n"
      "  %r: f32[3, 5, 7] = DequantizeLinear(%q, %s) @r\n  %t: f32[3, 5, 7] = Mul(%d, %r) @t\n"};
  for (const Stored& stored : kStored)
    for (const std::string& op : ops)
      expect_kernels(between(stored, "3, 5, 7", "3, 5, 7", op), "tenon:map_bytes");
}

// A Gather by a table of all 256 numbers gives each of them to the lookup.
TEST_F(Bytes, AreAllLookedUpAsTheyAreComputed) {
  for (const char* type : {"u8", "i8"})
    for (const char* op : {"Sigmoid", "Tanh", "HardSwish", "Elu"}) {
      SCOPED_TRACE(std::string(type) + ", " + op);
      expect_same(std::string("graph {\n  input %at: i64[1]\n  constant %all: ") + type +
                      "[7, 256] = " + all_bytes(7 * 256) + "\n  %x: " + type +
                      "[1, 256] = Gather(%all, %at) {axis = 0} @x\n"
                      "  constant %s: f32[] = [0.04]\n  constant %z: " +
                      type +
                      "[] = [90]\n  constant %ys: f32[] = [0.013]\n"
                      "  %d: f32[1, 256] = DequantizeLinear(%x, %s, %z) @d\n"
                      "  %t: f32[1, 256] = " +
                      op + "(%d) @t\n  %y: " + type +
                      "[1, 256] = QuantizeLinear(%t, %ys, %z) @y\n  output y = %y\n}",
                  kExact);
    }
}

TEST_F(Bytes, AreRepeatedAndPickedAsTheyAre) {
  for (const Stored& stored : kStored) {
    expect_kernels(between(stored, "2, 20, 5, 7", "2, 40, 5, 21",
                           "  constant %n: i64[4] = [1, 2, 1, 3]\n"
                           "  %t: f32[2, 40, 5, 21] = Tile(%d, %n) @t\n"),
                   "tenon:tile");
    expect_kernels(between(stored, "2, 20, 5, 7", "2, 20, 7, 9",
                           "  constant %n: i64[8] = [0, 0, 1, 1, 0, 0, 1, 1]\n"
                           "  %t: f32[2, 20, 7, 9] = Pad(%d, %n) {mode = \"reflect\"} @t\n"),
                   "tenon:pad");
  }
}

TEST_F(Bytes, OfRowMajorImagesArePooledAsTheyAre) {
  struct Pool {
    std::string source, result, window;
  };
  const Pool pools[] = {
      {"2, 20, 6, 4", "2, 20, 3, 2", "kernel_shape = ints [2, 2], strides = ints [2, 2]"},
      {"2, 3, 7, 9", "2, 3, 4, 5",
       "kernel_shape = ints [3, 3], strides = ints [2, 2], pads = ints [1, 1, 1, 1]"},
      {"1, 18, 20", "1, 18, 10", "kernel_shape = ints [2], strides = ints [2]"},
      {"1, 17, 2, 6, 4", "1, 17, 1, 3, 2",
       "kernel_shape = ints [2, 2, 2], strides = ints [2, 2, 2]"}};
  for (const Stored& stored : kStored)
    for (const Pool& pool : pools)
      for (const char* op : {"MaxPool", "AveragePool"})
        expect_kernels(
            between(stored, pool.source, pool.result,
                    "  %t: f32[" + pool.result + "] = " + op + "(%d) {" + pool.window + "} @t\n"),
            "");
}

TEST_F(Bytes, OfRowMajorImagesGoToTheirNearestPlacesAsTheyAre) {
  struct Size {
    std::string factors, dims;
  };
  for (const Stored& stored : kStored)
    for (const Size& size : {Size{"0.5, 0.5", "2, 20, 4, 5"}, Size{"1.5, 0.75", "2, 20, 12, 7"}})
      for (const char* rule : {"half_pixel", "align_corners", "asymmetric"})
        for (const char* nearest : {"floor", "ceil", "round_prefer_ceil"})
          expect_kernels(between(stored, "2, 20, 8, 10", size.dims,
                                 "  constant %f: f32[4] = [1, 1, " + size.factors +
                                     "]\n  %t: f32[" + size.dims +
                                     "] = Resize(%d, _, %f) {mode = \"nearest\", "
                                     "coordinate_transformation_mode = \"" +
                                     rule + "\", nearest_mode = \"" + nearest + "\"} @t\n"),
                         "tenon:nearest");
}

// Where floats in another order are needed, bytes are put into that order.
TEST_F(Bytes, AreTurnedBeforeTheyBecomeFloats) {
  for (const Stored& stored : kStored)
    expect_same(between(stored, "2, 20, 18, 20", "2, 20, 9, 10",
                        "  constant %f: f32[4] = [1, 1, 0.5, 0.5]\n"
                        "  %t: f32[2, 20, 9, 10] = Resize(%d, _, %f) {mode = \"linear\"} @t\n"),
                kExact);
}

TEST_F(Bytes, OfOneChannelEachOverThreeAxesAreSummedInFloats) {
  for (const Stored& stored : kStored)
    expect_same(between(stored, "1, 8, 4, 5, 6", "1, 8, 4, 5, 6",
                        "  constant %w: i8[8, 1, 3, 3, 3] = " + all_bytes(8 * 27) +
                            "\n  constant %ws: f32[] = [0.125]\n"
                            "  %dw: f32[8, 1, 3, 3, 3] = DequantizeLinear(%w, %ws) @dw\n"
                            "  %t: f32[1, 8, 4, 5, 6] = Conv(%d, %dw) {group = 8, pads = ints "
                            "[1, 1, 1, 1, 1, 1]} @t\n"),
                kExact);
}

}  // namespace
}  // namespace tenon::test
