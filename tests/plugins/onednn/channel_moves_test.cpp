// SPDX-License-Identifier: Apache-2.0
// Concat, shuffles of channels, Split and Slice of 8-bit images: equal numbers, and one pass for
// all of them. All scales are powers of two, so nothing is rounded differently anywhere.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct Moves {
  const char* name;
  std::string text;  // from %da and %db, f32[2, 24, 5, 3], on
  int passes;        // of kernels/channel_rows.h
};

std::string random_weights(const std::string& name, int count) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::mt19937 random(static_cast<uint32_t>(count) + static_cast<uint32_t>(name.back()));
  std::string text = "  constant %" + name + ": i8[24, 6, 1, 1] = x'";
  for (int i = 0; i < 2 * count; ++i)
    text += kDigits[random() % 16];
  return text + "'\n";
}

std::string rounded(const std::string& from,
                    const std::string& to,
                    const std::string& dims,
                    const std::string& scale = "s8",
                    const std::string& type = "u8") {
  const std::string parameters = ", %" + scale + ", %" + (type == "u8" ? "z" : "n") + ")";
  return "  %q" + to + ": " + type + "[" + dims + "] = QuantizeLinear(%" + from + parameters +
         " @q" + to + "\n  %" + to + ": f32[" + dims + "] = DequantizeLinear(%q" + to + parameters +
         " @" + to + "\n";
}

// Two quantized images, channels last as convolutions leave them.
std::string images() {
  std::string text = R"(graph {
  input %x: f32[2, 6, 5, 3]
  constant %s: f32[] = [0.015625]
  constant %s16: f32[] = [0.0625]
  constant %s8: f32[] = [0.125]
  constant %ws: f32[] = [0.0078125]
  constant %z: u8[] = [120]
  constant %n: i8[] = [-3]
)" + rounded("x", "dx", "2, 6, 5, 3", "s");
  for (std::string side : {"a", "b"})
    text += random_weights("w" + side, 144) + "  %dw" + side +
            ": f32[24, 6, 1, 1] = DequantizeLinear(%w" + side + ", %ws) @w" + side + "\n  %c" +
            side + ": f32[2, 24, 5, 3] = Conv(%dx, %dw" + side + ") @c" + side + "\n";
  return text + rounded("ca", "da", "2, 24, 5, 3", "s16") + rounded("cb", "db", "2, 24, 5, 3");
}

std::string concat(const std::string& other = "db") {
  return "  %j: f32[2, 48, 5, 3] = Concat(%da, %" + other + ") {axis = 1} @j\n";
}

std::string shuffle(
    const std::string& from, const std::string& to, int groups, int channels, bool rounds = true) {
  const std::string g = std::to_string(groups), n = std::to_string(channels / groups);
  const std::string wide = "2, " + g + ", " + n + ", 5, 3",
                    transposed = "2, " + n + ", " + g + ", 5, 3",
                    whole = "2, " + std::to_string(channels) + ", 5, 3";
  return "  constant %wide: i64[5] = [" + wide + "]\n  constant %whole: i64[4] = [" + whole +
         "]\n  %r: f32[" + wide + "] = Reshape(%" + from + ", %wide) @r\n" +
         (rounds ? rounded("r", "dr", wide) : "") + "  %t: f32[" + transposed + "] = Transpose(" +
         (rounds ? "%dr" : "%r") + ") {perm = ints [0, 2, 1, 3, 4]} @t\n  %" + to + ": f32[" +
         whole + "] = Reshape(%t, %whole) @" + to + "\n";
}

std::string slices(const std::string& from) {
  return R"(  constant %zero: i64[1] = [0]
  constant %at: i64[1] = [20]
  constant %end: i64[1] = [48]
  constant %one: i64[1] = [1]
  %low: f32[2, 20, 5, 3] = Slice(%)" +
         from + R"(, %zero, %at, %one) @low
  %high: f32[2, 28, 5, 3] = Slice(%)" +
         from + R"(, %at, %end, %one) @high
  output low = %low
  output high = %high
})";
}

std::string tail(const std::string& value, const std::string& dims) {
  return "  %y: f32[" + dims + "] = Relu(%" + value + ") @y\n  output y = %y\n}";
}

const std::string kWhole = "2, 48, 5, 3";

const Moves kCases[] = {
    {"JoinedShuffledAndCut",
     concat() + rounded("j", "dj", kWhole) + shuffle("dj", "k", 2, 48) +
         rounded("k", "dk", kWhole) + slices("dk"),
     1},
    {"JoinedAndShuffled",
     concat() + rounded("j", "dj", kWhole) + shuffle("dj", "k", 4, 48) + tail("k", kWhole), 1},
    {"JoinedToSignedNumbers",
     concat() + rounded("j", "dj", kWhole, "s8", "i8") + shuffle("dj", "k", 2, 48, false) +
         tail("k", kWhole),
     1},
    {"WhatIsShuffledHasAnotherReader",
     concat() + rounded("j", "dj", kWhole) + shuffle("dj", "k", 2, 48) + "  output j = %dj\n" +
         tail("k", kWhole),
     1},
    {"ShuffledAlone", shuffle("db", "k", 3, 24) + tail("k", "2, 24, 5, 3"), 1},
    {"ShuffledAloneInFloats", shuffle("cb", "k", 3, 24, false) + tail("k", "2, 24, 5, 3"), 0},
    {"RoundedAnewInBetween",
     shuffle("da", "k", 2, 24) + rounded("k", "dk", "2, 24, 5, 3", "s16") +
         tail("dk", "2, 24, 5, 3"),
     0},
    {"OneScaleAndNoRoundingBehind",
     concat("db2") + shuffle("j", "k", 2, 48, false) + tail("k", kWhole), 1},
    {"TheLastAxisMovesToo",
     "  constant %flat: i64[3] = [2, 24, 15]\n  %k: f32[2, 24, 15] = Reshape(%db, %flat) @k\n"
     "  %t: f32[2, 15, 24] = Transpose(%k) {perm = ints [0, 2, 1]} @t\n" +
         tail("t", "2, 15, 24"),
     0},
    {"SplitInThree",
     concat() + rounded("j", "dj", kWhole) +
         "  %p: f32[2, 16, 5, 3], %o: f32[2, 16, 5, 3], %v: f32[2, 16, 5, 3] = Split(%dj) {axis = "
         "1, num_outputs = 3} @split\n  output p = %p\n  output o = %o\n  output v = %v\n}",
     1},
};

class ChannelMoves : public BothBackends, public testing::WithParamInterface<Moves> {};

TEST_P(ChannelMoves, KeepEachNumber) {
  std::string text = images();
  if (GetParam().text.find("%db2") != std::string::npos)
    text += rounded("cb", "db2", "2, 24, 5, 3", "s16");
  expect_same(text + GetParam().text, 0);
  const Outcome got = run(parse(text + GetParam().text), {{"backend", "onednn"}, {"threads", 2}});
  int passes = 0;
  for (const json& part : got.plan["partitions"])
    for (const auto& [kernel, n] : part["kernels"].items())
      passes += kernel == "tenon:channel_rows" ? n.get<int>() : 0;
  EXPECT_EQ(passes, GetParam().passes) << got.plan;
}

INSTANTIATE_TEST_SUITE_P(Cases, ChannelMoves, testing::ValuesIn(kCases), [](const auto& test) {
  return std::string(test.param.name);
});

}  // namespace
}  // namespace tenon::test
