// SPDX-License-Identifier: Apache-2.0
// Maxima of dilated windows and their gradients against the reference.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class DilatedMax : public BothBackends {
 protected:
  struct Case {
    std::string x, y, attributes;
  };
  static const std::vector<Case>& cases() {
    static const std::vector<Case> kCases = {
        {"[2, 3, 17]", "[2, 3, 7]",
         "kernel_shape = ints [3], strides = ints [2], dilations = ints [2]"},
        {"[1, 67, 9, 11]", "[1, 67, 3, 5]",
         "kernel_shape = ints [3, 3], strides = ints [2, 2], dilations = ints [2, 1], "
         "pads = ints [0, 0, 1, 1]"},
        {"[2, 130, 9, 11]", "[2, 130, 9, 11]",
         "kernel_shape = ints [3, 3], dilations = ints [3, 2], pads = ints [3, 2, 3, 2]"},
        {"[1, 5, 9, 11]", "[1, 5, 4, 5]",
         "kernel_shape = ints [2, 2], strides = ints [2, 2], dilations = ints [3, 3], "
         "ceil_mode = 1"},
        {"[2, 2, 4, 5, 6]", "[2, 2, 2, 4, 2]",
         "kernel_shape = ints [2, 2, 3], dilations = ints [2, 1, 2]"},
    };
    return kCases;
  }
  static bool has_own_kernel(const Outcome& got) {
    for (const auto& [kernel, n] : got.plan["partitions"][0]["kernels"].items())
      if (kernel == "tenon:dilated_max") return true;
    return false;
  }
};

// With ties, -inf and NaN.
TEST_F(DilatedMax, AgreesWithTheReferenceInAnOwnKernel) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.attributes);
    const std::string text =
        cat("graph {\n  input %x: f32", one.x, "\n  %r: f32", one.x, " = Round(%x) @r\n  %l: f32",
            one.x, " = Log(%r) @l\n  %y: f32", one.y, " = MaxPool(%l) {", one.attributes,
            "} @n\n  %z: f32", one.y, " = MaxPool(%x) {", one.attributes,
            "} @m\n  output y = %y\n  output z = %z\n}");
    expect_same(text, 0);
    EXPECT_TRUE(has_own_kernel(run(parse(text), {{"backend", "onednn"}})));
  }
}

// Behind its MaxPool, which keeps where the maxima were, and without one.
TEST_F(DilatedMax, HasTheGradientOfTheReference) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.attributes);
    const std::string start = cat("graph {\n  input %x: f32", one.x, "\n  input %d: f32", one.y,
                                  "\n  %r: f32", one.x, " = Round(%x) @r\n");
    const std::string gradient = cat("  %dx: f32", one.x, " = tenon:MaxPoolGrad(%d, %r) {",
                                     one.attributes, "} @g\n  output dx = %dx\n");
    expect_same(start + gradient + "}", 1e-6);
    const std::string pool =
        cat("  %y: f32", one.y, " = MaxPool(%r) {", one.attributes, "} @p\n  output y = %y\n");
    expect_same(start + pool + gradient + "}", 1e-6);
    const Outcome got = run(parse(start + gradient + "}"), {{"backend", "onednn"}});
    EXPECT_TRUE(has_own_kernel(got));
  }
}

}  // namespace
}  // namespace tenon::test
