// SPDX-License-Identifier: Apache-2.0
// Integers that are computed in floating point are right in bf16 too.

#include <gtest/gtest.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class ExactNumbers : public BothBackends {};

// As many as are kept in bf16, in more bits than that has; moved between the nodes that compute.
TEST_F(ExactNumbers, OfWhichIndicesAreMade) {
  const std::string text = R"(graph {
  input %r: i64[]
  constant %zero: i64[] = [0]
  constant %first: i64[] = [0]
  constant %end: i64[] = [32768]
  constant %step: i64[] = [1]
  constant %shape: i64[2] = [128, 256]
  constant %half: f32[] = [0.5]
  constant %one: f32[] = [1]
  %n: i64[] = Mul(%r, %zero) @n
  %begin: i64[] = Add(%n, %first) @begin
  %i: i64[32768] = Range(%begin, %end, %step) @range
  %f: f32[32768] = Cast(%i) {to = dtype f32} @cast
  %g: f32[32768] = Mul(%f, %half) @half
  %m: f32[128, 256] = Reshape(%g, %shape) @reshape
  %t: f32[256, 128] = Transpose(%m) {perm = ints [1, 0]} @transpose
  %u: f32[256, 128] = Add(%t, %one) @more
  %j: i64[256, 128] = Cast(%u) {to = dtype i64} @back
  %both: f32[256, 256] = Concat(%t, %u) {axis = 1} @both
  %k: i32[256, 256] = Cast(%both) {to = dtype i32} @back_too
  output j = %j
  output k = %k
})";
  OwnedGraph graph = parse(text);
  Outcome expected = run(graph, {{"backend", "reference"}});
  Outcome got = run(graph, {{"backend", "onednn"}, {"precision", "bf16"}});
  ASSERT_EQ(expected.error + got.error, "");
  EXPECT_EQ(got.outputs, expected.outputs);
}

}  // namespace
}  // namespace tenon::test
