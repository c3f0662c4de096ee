// SPDX-License-Identifier: Apache-2.0
// A step that writes over one of its operands reads no other one from the same memory: a scale, a
// bias or a mask may be a slice of what is normalized.

#include <gtest/gtest.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class Overwriting : public BothBackends {
 protected:
  // %g [4, 6] is made for the graph alone; %s are its first 6 numbers, without a copy.
  void expect_whole(const std::string& body) {
    expect_same(R"(graph {
  input %x: f32[4, 5]
  input %w: f32[5, 6]
  input %a: f32[4, 5]
  constant %all: i64[1] = [-1]
  constant %begin: i64[1] = [0]
  constant %end: i64[1] = [6]
  %g: f32[4, 6] = MatMul(%x, %w) @g
  %f: f32[24] = Reshape(%g, %all) @f
  %s: f32[6] = Slice(%f, %begin, %end) @s
)" + body + "\n}");
  }
};

// A second result, so that the one before is made in the arena.
const std::string kEnd = R"(  %y: f32[4, 6] = Softmax(%r) {axis = 0} @y
  output y = %y)";

TEST_F(Overwriting, AScaleAndABiasOfANormalization) {
  expect_whole("  %r: f32[4, 6] = LayerNormalization(%g, %s, %s) {axis = -1} @r\n" + kEnd);
  expect_whole("  %r: f32[4, 6] = RMSNormalization(%g, %s) {axis = -1} @r\n" + kEnd);
}

TEST_F(Overwriting, AMaskOfASoftmax) {
  expect_whole(R"(  %m: f32[4, 6] = Add(%g, %s) @m
  %r: f32[4, 6] = Softmax(%m) {axis = -1} @r
)" + kEnd);
}

TEST_F(Overwriting, ABiasBesideAResidual) {
  const std::string product = R"(  %p: f32[4, 6] = MatMul(%a, %w) @p
)";
  for (const char* order : {"%s", "%g"}) {
    const char* then = order == std::string("%s") ? "%g" : "%s";
    expect_whole(product + "  %q: f32[4, 6] = Add(%p, " + order +
                 ") @q\n  %r: f32[4, 6] = Add(%q, " + then + ") @r\n" + kEnd);
  }
}

TEST_F(Overwriting, AFactorBesideAResidual) {
  expect_whole(R"(  %p: f32[4, 6] = MatMul(%a, %w) @p
  %q: f32[4, 6] = Mul(%p, %s) @q
  %r: f32[4, 6] = Add(%q, %g) @r
)" + kEnd);
}

TEST_F(Overwriting, SumsOfOneMemory) {
  expect_whole(R"(  %q: f32[4, 6] = Mul(%g, %s) @q
  %r: f32[4, 6] = Tanh(%q) @r
)" + kEnd);
}

}  // namespace
}  // namespace tenon::test
