// SPDX-License-Identifier: Apache-2.0
// MaxPool of 8-bit integers, as it stands between operators of integers.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class IntegerPool : public BothBackends {
 protected:
  void expect_maxima(const std::string& type,
                     const std::string& in,
                     const std::string& out,
                     const std::string& window,
                     size_t n_fallbacks) {
    SCOPED_TRACE(cat(type, " ", in, " ", window));
    const std::string text = cat("graph {\n  input %x: ", type, "[", in, "]\n  %y: ", type, "[",
                                 out, "] = MaxPool(%x) {", window, "} @n\n  output y = %y\n}");
    const OwnedGraph graph = parse(text);
    const Outcome got = run(graph, {{"backend", "onednn"}});
    EXPECT_EQ(got.plan["fallback_nodes"].size(), n_fallbacks) << got.plan["fallback_nodes"];
    EXPECT_EQ(got.error, "");
    EXPECT_EQ(got.outputs, run(graph, {{"backend", "reference"}}).outputs);
  }
};

TEST_F(IntegerPool, TakesMaximaOfImages) {
  for (const char* type : {"u8", "i8"}) {
    expect_maxima(type, "2, 5, 6, 7", "2, 5, 3, 3",
                  "kernel_shape = ints [2, 2], strides = ints [2, 2]", 0);
    expect_maxima(type, "1, 33, 7, 9", "1, 33, 4, 5",
                  "kernel_shape = ints [3, 3], strides = ints [2, 2], pads = ints [1, 1, 1, 1]", 0);
    expect_maxima(type, "1, 3, 5, 8", "1, 3, 3, 4",
                  "kernel_shape = ints [2, 2], strides = ints [2, 2], ceil_mode = 1", 0);
  }
}

TEST_F(IntegerPool, LeavesOtherMaximaToTheReference) {
  expect_maxima("u8", "1, 3, 8", "1, 3, 4", "kernel_shape = ints [2], strides = ints [2]", 1);
  expect_maxima("i8", "1, 3, 7, 7", "1, 3, 5, 5",
                "kernel_shape = ints [2, 2], dilations = ints [2, 2]", 1);
}

}  // namespace
}  // namespace tenon::test
