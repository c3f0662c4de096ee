// SPDX-License-Identifier: Apache-2.0
// Moves along axes outside of rows that are taken as they are: the same as on the reference.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

TEST_F(BothBackends, WholeRowsAreRepeated) {
  expect_same(R"(graph {
  input %x: i8[2, 3, 5, 7]
  constant %r: i64[4] = [2, 2, 1, 1]
  constant %q: i64[4] = [1, 3, 2, 1]
  %y: i8[4, 6, 5, 7] = Tile(%x, %r) @n1
  %z: i8[2, 9, 10, 7] = Tile(%x, %q) @n2
  output y = %y
  output z = %z
})",
              0);
}

TEST_F(BothBackends, WholeRowsAreTakenInAnyOrder) {
  expect_same(R"(graph {
  input %x: i64[9, 4, 3]
  constant %start: i64[1] = [8]
  constant %end: i64[1] = [-10]
  constant %axis: i64[1] = [0]
  constant %back: i64[1] = [-1]
  constant %second: i64[1] = [-2]
  %y: i64[9, 4, 3] = Slice(%x, %start, %end, %axis, %back) @n1
  %z: i64[5, 4, 3] = Slice(%x, %start, %end, %axis, %second) @n2
  output y = %y
  output z = %z
})",
              0);
}

TEST_F(BothBackends, WholeRowsArePadded) {
  expect_same(R"(graph {
  input %x: f32[2, 5, 3, 4]
  constant %p: i64[8] = [0, 2, 0, 0, 0, 3, 0, 0]
  constant %seven: f32[] = [7]
  %c: f32[2, 10, 3, 4] = Pad(%x, %p, %seven) @n1
  %e: f32[2, 10, 3, 4] = Pad(%x, %p) {mode = "edge"} @n2
  %r: f32[2, 10, 3, 4] = Pad(%x, %p) {mode = "reflect"} @n3
  output c = %c
  output e = %e
  output r = %r
})",
              0);
}

// More than fits in one row of the merged axes.
TEST_F(BothBackends, LongRowsAreRepeated) {
  expect_same(R"(graph {
  input %x: i64[3, 40, 50, 60]
  constant %r: i64[4] = [2, 2, 1, 1]
  %y: i64[6, 80, 50, 60] = Tile(%x, %r) @n1
  output y = %y
})",
              0);
}

}  // namespace
}  // namespace tenon::test
