// SPDX-License-Identifier: Apache-2.0
// Convolutions of signals of one channel each, which oneDNN sees as images of one row.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct SignalCase {
  const char* name;
  const char* weights;  // their shape
  const char* attributes;
  const char* made;    // the shape of the result
  const char* behind;  // from %c to %y
};

class Signals : public BothBackends, public testing::WithParamInterface<SignalCase> {};

TEST_P(Signals, AreConvolvedAsByTheReference) {
  const SignalCase& one = GetParam();
  const std::string text = cat("graph {\n  input %x: f32[2, 37, 50]\n  input %r: f32", one.made,
                               "\n  input %w: f32", one.weights, "\n  input %b: f32[37]\n  %c: f32",
                               one.made, " = Conv(%x, %w, %b) {group = 37, ", one.attributes,
                               "} @n\n  ", one.behind, "\n  output y = %y\n}");
  expect_same(text);
  const Outcome got = run(parse(text), {{"backend", "onednn"}});
  EXPECT_NE(got.plan.dump().find("a signal as an image"), std::string::npos) << got.plan;
}

constexpr SignalCase kCases[] = {
    {"Plain", "[37, 1, 3]", "pads = ints [1, 1]", "[2, 37, 50]",
     "%y: f32[2, 37, 50] = Identity(%c) @i"},
    {"ManyTaps", "[37, 1, 31]", "pads = ints [15, 15]", "[2, 37, 50]",
     "%y: f32[2, 37, 50] = Relu(%c) @i"},
    {"UnevenPads", "[37, 1, 4]", "pads = ints [3, 0]", "[2, 37, 50]",
     "%y: f32[2, 37, 50] = Tanh(%c) @i"},
    {"Strides", "[37, 1, 5]", "strides = ints [3]", "[2, 37, 16]",
     "%y: f32[2, 37, 16] = Sigmoid(%c) @i"},
    {"Dilations", "[37, 1, 5]", "dilations = ints [4]", "[2, 37, 34]",
     "%y: f32[2, 37, 34] = Identity(%c) @i"},
    {"ASumBehind", "[37, 1, 9]", "pads = ints [4, 4]", "[2, 37, 50]",
     "%y: f32[2, 37, 50] = Add(%c, %r) @i"},
};

INSTANTIATE_TEST_SUITE_P(Cases, Signals, testing::ValuesIn(kCases), [](const auto& test) {
  return std::string(test.param.name);
});

}  // namespace
}  // namespace tenon::test
