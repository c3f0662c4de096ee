// SPDX-License-Identifier: Apache-2.0
// Infinities and NaN go through onednn's steps as the expressions of the operators say.

#include <gtest/gtest.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

// Bytes of f32 numbers.
constexpr const char* kZero = "00000000";
constexpr const char* kInfinity = "0000807f";
constexpr const char* kLeast = "000080ff";
constexpr const char* kNaN = "0000c07f";

std::string constant(std::initializer_list<const char*> numbers) {
  std::string text = "x'";
  for (const char* number : numbers)
    text += number;
  return text + "'";
}

class NotFinite : public BothBackends {};

TEST_F(NotFinite, ReachAllThatASoftmaxJoins) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const char* unusual : {kInfinity, kNaN, kLeast}) {
      // Channels that lie side by side: alone, and behind a convolution.
      expect_same(std::string("graph {\n  input %x: f32[2, 4, 1]\n  constant %u: f32[2, 4, 1] = ") +
                  constant({kZero, kZero, unusual, kZero, kZero, kZero, kZero, kZero}) +
                  "\n  %s: f32[2, 4, 1] = Add(%x, %u) @sum\n  %y: f32[2, 4, 1] = " + op +
                  "(%s) {axis = 1} @y\n  output y = %y\n}");
      expect_same(std::string("graph {\n  input %x: f32[1, 1, 2, 2]\n  constant %u: f32[1, 1, 2, "
                              "2] = ") +
                  constant({kZero, kZero, unusual, kZero}) + R"(
  constant %w: f32[4, 1, 1, 1] = [1, 2, -1, 3]
  %s: f32[1, 1, 2, 2] = Add(%x, %u) @sum
  %c: f32[1, 4, 2, 2] = Conv(%s, %w) @conv
  %y: f32[1, 4, 2, 2] = )" +
                  op + "(%c) {axis = 1} @y\n  output y = %y\n}");
    }
  }
}

TEST_F(NotFinite, PassAClipOnTheSideThatHasNoBound) {
  for (const char* bounds : {"%low, _", "_, %high", "_, _"})
    expect_same(std::string("graph {\n  input %x: f32[2, 3]\n  constant %u: f32[2, 3] = ") +
                constant({kInfinity, kZero, kZero, kZero, kLeast, kZero}) + R"(
  constant %low: f32[] = [-0.5]
  constant %high: f32[] = [0.5]
  constant %w: f32[3, 4] = [1, 2, 1, 3, 1, 1, 2, 1, 4, 1, 1, 1]
  %s: f32[2, 3] = Add(%x, %u) @sum
  %m: f32[2, 4] = MatMul(%s, %w) @matmul
  %y: f32[2, 4] = Clip(%m, )" +
                bounds + ") @clip\n  output y = %y\n}");
}

// NaN, infinities, 3e9, -3e9, 1e19, 1e20, 300 and -1.
TEST_F(NotFinite, AndLargeNumbersBecomeTheIntegersThatTheyAreOnTheReference) {
  const std::string numbers = constant({kNaN, kInfinity, kLeast, "5ed0324f", "5ed032cf", "23c70a5f",
                                        "ec78ad60", "00009643", "000080bf"});
  for (const char* real : {"f16", "f32", "f64"})
    for (const char* whole : {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"})
      expect_same(cat("graph {\n  input %x: f32[9]\n  constant %u: f32[9] = ", numbers,
                      "\n  %s: f32[9] = Add(%x, %u) @sum\n  %r: ", real,
                      "[9] = Cast(%s) {to = dtype ", real, "} @real\n  %y: ", whole,
                      "[9] = Cast(%r) {to = dtype ", whole, "} @whole\n  output y = %y\n}"),
                  0);
}

}  // namespace
}  // namespace tenon::test
