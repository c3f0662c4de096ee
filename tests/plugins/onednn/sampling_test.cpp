// SPDX-License-Identifier: Apache-2.0
// GridSample, RoiAlign and MaxPool with indices against the reference, which computes in f64.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class Sampling : public BothBackends {
 protected:
  // Of x and a grid of these shapes; x has NaN and -inf where it is not finite.
  void expect_all_rules(const std::string& x, const std::string& grid, const std::string& y) {
    for (const char* mode : {"linear", "nearest", "cubic"})
      for (const char* padding : {"zeros", "border", "reflection"})
        for (const char* corners : {"0", "1"}) {
          SCOPED_TRACE(cat(mode, " ", padding, " ", corners));
          const std::string rules = cat(" {mode = \"", mode, "\", padding_mode = \"", padding,
                                        "\", align_corners = ", corners, "}");
          expect_same(cat("graph {\n  input %x: ", x, "\n  input %g: ", grid, "\n  %r: ", x,
                          " = Round(%x) @r\n  %l: ", x, " = Log(%r) @l\n  %y: ", y,
                          " = GridSample(%x, %g)", rules, " @n\n  %z: ", y, " = GridSample(%l, %g)",
                          rules, " @m\n  output y = %y\n  output z = %z\n}"));
        }
  }
};

TEST_F(Sampling, AGridOverOneAxisReadsAsTheReference) {
  expect_all_rules("f32[2, 3, 7]", "f32[2, 5, 1]", "f32[2, 3, 5]");
}

TEST_F(Sampling, AGridOverTwoAxesReadsAsTheReference) {
  expect_all_rules("f32[2, 3, 5, 7]", "f32[2, 9, 11, 2]", "f32[2, 3, 9, 11]");
}

TEST_F(Sampling, AGridOverThreeAxesReadsAsTheReference) {
  expect_all_rules("f32[1, 2, 3, 4, 5]", "f32[1, 2, 3, 7, 3]", "f32[1, 2, 2, 3, 7]");
}

TEST_F(Sampling, AnImageOfOnePixelReadsAsTheReference) {
  expect_all_rules("f32[1, 1, 1, 1]", "f32[1, 3, 3, 2]", "f32[1, 1, 3, 3]");
}

TEST_F(Sampling, AGridOfHalvesReadsAsTheReference) {
  expect_all_rules("f16[1, 2, 4, 6]", "f16[1, 3, 5, 2]", "f16[1, 2, 3, 5]");
}

TEST_F(Sampling, CoordinatesThatAreNoPlacesReadAsTheReference) {
  for (const char* padding : {"zeros", "border", "reflection"})
    for (const char* mode : {"linear", "nearest", "cubic"})
      expect_same(cat(R"(graph {
  input %x: f32[1, 20, 3, 5]
  input %n: f32[1, 6, 8, 2]
  constant %huge: f32[] = [1e30]
  %r: f32[1, 6, 8, 2] = Round(%n) @r
  %l: f32[1, 6, 8, 2] = Log(%r) @l
  %g: f32[1, 6, 8, 2] = Mul(%l, %huge) @m
  %y: f32[1, 20, 6, 8] = GridSample(%x, %g) {mode = ")",
                      mode, "\", padding_mode = \"", padding, "\"} @n\n  output y = %y\n}"));
}

// Boxes of up to 40 pixels, many of which lie outside of the image or end before they begin.
std::string boxes(const std::string& attributes, const char* type = "f32") {
  const std::string t = type;
  return cat("graph {\n  input %x: ", t, "[2, 19, 9, 13]\n  input %c: ", t,
             "[11, 4]\n  constant %b: i64[11] = [0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0]\n"
             "  constant %s: f32[] = [10]\n  %f: ",
             t, "[] = Cast(%s) {to = dtype ", t, "} @f\n  %r: ", t,
             "[11, 4] = Mul(%c, %f) @r\n  %y: ", t,
             "[11, 19, 3, 5] = RoiAlign(%x, %r, %b) {output_height = 3, output_width = 5, ",
             attributes, "} @n\n  output y = %y\n}");
}

TEST_F(Sampling, BoxesAreSampledAsByTheReference) {
  for (const char* mode : {"avg", "max"})
    for (const char* rule : {"half_pixel", "output_half_pixel"})
      for (const char* sampling : {"0", "1", "3"})
        expect_same(boxes(cat("mode = \"", mode, "\", coordinate_transformation_mode = \"", rule,
                              "\", sampling_ratio = ", sampling, ", spatial_scale = 0.7")));
}

TEST_F(Sampling, BoxesInHalvesAreSampledAsByTheReference) {
  expect_same(boxes("sampling_ratio = 2", "f16"), 1e-3);
}

TEST_F(Sampling, BoxesOfImagesThatAreNotThereAreRefused) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 1, 4, 4]
  constant %r: f32[1, 4] = [0, 0, 3, 3]
  constant %b: i64[1] = [2]
  %y: f32[1, 1, 1, 1] = RoiAlign(%x, %r, %b) @n
  output y = %y
})");
  const Outcome got = run(graph, {{"backend", "onednn"}});
  EXPECT_NE(got.error.find("batch_indices: expected 0..1, got 2"), std::string::npos) << got.error;
}

struct PoolCase {
  const char* x;
  const char* y;
  const char* attributes;
};

TEST_F(Sampling, MaximaAreWhereTheReferenceFindsThem) {
  constexpr PoolCase kCases[] = {
      {"[2, 3, 17]", "[2, 3, 8]", "kernel_shape = ints [3], strides = ints [2]"},
      {"[2, 3, 7, 150]", "[2, 3, 7, 150]", "kernel_shape = ints [3, 3], pads = ints [1, 1, 1, 1]"},
      {"[1, 5, 9, 11]", "[1, 5, 4, 5]", "kernel_shape = ints [2, 2], strides = ints [2, 2]"},
      {"[1, 5, 9, 11]", "[1, 5, 5, 6]",
       "kernel_shape = ints [2, 2], strides = ints [2, 2], ceil_mode = 1, storage_order = 1"},
      {"[1, 2, 9, 11]", "[1, 2, 3, 4]",
       "kernel_shape = ints [2, 3], strides = ints [3, 2], dilations = ints [3, 2], pads = ints "
       "[1, 0, 0, 1]"},
      {"[2, 2, 4, 5, 6]", "[2, 2, 3, 3, 5]", "kernel_shape = ints [2, 3, 2], storage_order = 1"},
  };
  for (const PoolCase& one : kCases) {
    SCOPED_TRACE(one.attributes);
    // With ties, -inf and NaN.
    expect_same(cat("graph {\n  input %x: f32", one.x, "\n  %r: f32", one.x,
                    " = Round(%x) @r\n  %l: f32", one.x, " = Log(%r) @l\n  %y: f32", one.y,
                    ", %i: i64", one.y, " = MaxPool(%l) {", one.attributes, "} @n\n  %z: f32",
                    one.y, ", %j: i64", one.y, " = MaxPool(%x) {", one.attributes,
                    "} @m\n  output y = %y\n  output i = %i\n  output z = %z\n  output j = %j\n}"));
  }
}

}  // namespace
}  // namespace tenon::test
