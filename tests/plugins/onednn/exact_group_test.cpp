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

}  // namespace
}  // namespace tenon::test
