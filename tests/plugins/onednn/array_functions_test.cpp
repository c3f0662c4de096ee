// SPDX-License-Identifier: Apache-2.0
// What functions of arrays are made of, beside the reference: moves in runs, filters of two inputs,
// norms, stencils.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class ArrayFunctions : public BothBackends {
 protected:
  void expect_body(const std::string& body) { expect_same("graph {\n" + body + "\n}"); }
};

TEST_F(ArrayFunctions, PadsOfOneRunAndBackwards) {
  expect_body(R"(input %x: f32[3, 40]
  constant %s: i64[1] = [-1]
  constant %e: i64[1] = [-99]
  constant %a: i64[1] = [1]
  constant %t: i64[1] = [-1]
  constant %p: i64[4] = [1, 3, 0, 5]
  %f: f32[3, 40] = Slice(%x, %s, %e, %a, %t) @p1
  %y: f32[4, 48] = Pad(%f, %p) {mode = "edge"} @p2
  %z: f32[4, 48] = Pad(%x, %p) {mode = "reflect"} @p3
  output y = %y
  output z = %z)");
}

TEST_F(ArrayFunctions, FiltersThatAreComputed) {
  expect_body(R"(input %x: f32[3, 1, 50]
  input %w: f32[1, 1, 7]
  %a: f32[3, 1, 56] = Conv(%x, %w) {pads = ints [6, 6]} @f1
  %b: f32[3, 1, 15] = Conv(%x, %w) {pads = ints [2, 3], strides = ints [3], dilations = ints [2]} @f2
  %c: f32[3, 1, 44] = Conv(%x, %w) @f3
  output a = %a
  output b = %b
  output c = %c)");
}

TEST_F(ArrayFunctions, NormsOverAxesApart) {
  expect_body(R"(input %x: f32[5, 6, 70]
  constant %p: i64[2] = [0, 2]
  constant %q: i64[1] = [0]
  %a: f32[6] = ReduceL2(%x, %p) {keepdims = 0} @l1
  %b: f32[1, 6, 70] = ReduceL2(%x, %q) @l2
  output a = %a
  output b = %b)");
}

TEST_F(ArrayFunctions, StencilOfSlices) {
  expect_body(R"(input %x: f32[9, 11]
  constant %o: i64[1] = [0]
  constant %l: i64[1] = [1]
  constant %t: i64[1] = [2]
  constant %e: i64[1] = [99]
  constant %m: i64[1] = [-1]
  constant %k: i64[1] = [-2]
  %a: f32[7, 11] = Slice(%x, %o, %k, %o) @s1
  %b: f32[7, 11] = Slice(%x, %t, %e, %o) @s2
  %s: f32[7, 11] = Add(%a, %b) @s3
  %c: f32[7, 11] = Slice(%x, %l, %m, %o) @s4
  %d: f32[7, 11] = Sub(%s, %c) @s5
  %u: f32[11, 7] = Transpose(%d) {perm = ints [1, 0]} @s6
  %v: f32[11, 7] = Tanh(%u) @s7
  output y = %d
  output v = %v)");
}

}  // namespace
}  // namespace tenon::test
