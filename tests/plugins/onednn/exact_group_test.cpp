// SPDX-License-Identifier: Apache-2.0
// Pointwise nodes of doubles and of integers that run as one step.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

// Several results, one of them a comparison that the group reads too; the sum of rows is read in
// it.
TEST_F(BothBackends, DoublesThatReadOneAnotherAreOneStep) {
  const char* text = R"(graph {
  input %x: f64[40, 70]
  input %r: f64[40, 1]
  constant %half: f64[] = [0.5]
  constant %two: f64[] = [2]
  %a: f64[40, 70] = Sub(%x, %r) @n1
  %c: bool[40, 70] = Greater(%a, %half) @n2
  %t: f64[40, 70] = Tanh(%a) @n3
  %p: f64[40, 70] = Pow(%t, %two) @n4
  %e: f64[40, 70] = Exp(%p) @n5
  %y: f64[40, 70] = Where(%c, %e, %a) @n6
  output y = %y
  output c = %c
  output t = %t
})";
  expect_same(text, 1e-14);
  const json part = run(parse(text), {{"backend", "onednn"}}).plan["partitions"][0];
  EXPECT_EQ(part["kernels"], json({{"tenon:exact", 1}})) << part;
}

// Integers of 32 bits wrap in each step, also where nothing is stored between.
TEST_F(BothBackends, IntegersOfAGroupWrapToTheirWidth) {
  const char* text = R"(graph {
  input %x: i32[300]
  constant %large: i32[] = [2147483647]
  constant %three: i32[] = [3]
  %a: i32[300] = Add(%x, %large) @n1
  %b: i32[300] = Mul(%a, %a) @n2
  %y: i32[300] = Div(%b, %three) @n3
  output y = %y
})";
  expect_same(text, 0);
  const json part = run(parse(text), {{"backend", "onednn"}}).plan["partitions"][0];
  EXPECT_EQ(part["steps"], 1) << part;
}

// Masks that nothing but masks are made of.
TEST_F(BothBackends, LogicOfBooleansIsOneStepOfBytes) {
  const char* text = R"(graph {
  input %a: bool[4, 500]
  input %b: bool[4, 1]
  %n: bool[4, 1] = Not(%b) @n1
  %c: bool[4, 500] = And(%a, %n) @n2
  %d: bool[4, 500] = Xor(%c, %b) @n3
  %y: bool[4, 500] = Or(%d, %a) @n4
  output y = %y
})";
  expect_same(text, 0);
  const json part = run(parse(text), {{"backend", "onednn"}}).plan["partitions"][0];
  EXPECT_EQ(part["kernels"], json({{"tenon:exact", 2}})) << part;
}

TEST_F(BothBackends, LogicThatChoosesBetweenFloatsIsOneStepWithThem) {
  const char* text = R"(graph {
  input %a: bool[4, 500]
  input %b: bool[4, 1]
  input %x: f32[4, 500]
  constant %low: f32[] = [-10000]
  %c: bool[4, 500] = And(%a, %b) @n1
  %d: bool[4, 500] = Not(%c) @n2
  %y: f32[4, 500] = Where(%d, %x, %low) @n3
  output y = %y
})";
  expect_same(text, 0);
  const json part = run(parse(text), {{"backend", "onednn"}}).plan["partitions"][0];
  EXPECT_EQ(part["steps"], 1) << part;
}

// The result of 8 bits wraps, and is compared with a number that is none of 8 bits.
TEST_F(BothBackends, BytesWrapBeforeTheyAreCompared) {
  const char* text = R"(graph {
  input %x: u8[3, 700]
  input %r: u8[700]
  constant %three: u8[] = [3]
  %a: u8[3, 700] = Mul(%x, %three) @n1
  %b: u8[3, 700] = Sub(%a, %r) @n2
  %c: u8[3, 700] = Div(%b, %three) @n3
  %d: bool[3, 700] = Less(%c, %r) @n4
  %y: u8[3, 700] = Where(%d, %c, %x) @n5
  output y = %y
})";
  expect_same(text, 0);
}

}  // namespace
}  // namespace tenon::test
