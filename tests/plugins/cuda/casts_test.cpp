// SPDX-License-Identifier: Apache-2.0
// Casts within generated kernels, against the reference.

#include <cmath>

#include "plan_fixture.hpp"

namespace tenon::cuda {
namespace {

using test::Plans;

// What they do not hold, NaN too, is what tenon/whole.hpp says.
TEST_F(Plans, CastLargeNumbersToIntegersAsTheReferenceDoes) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[8]
  %u: u64[8] = Cast(%x) {to = dtype u64} @unsigned
  %i: i64[8] = Cast(%x) {to = dtype i64} @signed
  %b: i8[8] = Cast(%x) {to = dtype i8} @bytes
  %v: u32[8] = Cast(%x) {to = dtype u32} @unsigned_words
  %w: i32[8] = Cast(%x) {to = dtype i32} @words
  output u = %u
  output i = %i
  output b = %b
  output v = %v
  output w = %w
}
)");
  check_with({[](int) {
               return std::vector<test::Bytes>{test::packed(
                   TN_F32, {1e19f, -1e19f, 1e20f, -3.5f, 300, NAN, INFINITY, -INFINITY})};
             }},
             plan, graph_.get(), 1, 1e-9);
}

TEST_F(Plans, RoundWhereACastStands) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[4]
  %h: f16[4] = Cast(%x) {to = dtype f16} @half
  %y: f32[4] = Cast(%h) {to = dtype f32} @back
  %b: bf16[4] = Cast(%y) {to = dtype bf16} @bfloat
  %z: f32[4] = Cast(%b) {to = dtype f32} @again
  output y = %y
  output z = %z
}
)");
  check_with({[](int) {
               return std::vector<test::Bytes>{test::packed(TN_F32, {1.0001f, 70000, 1e-9f, 0.1f})};
             }},
             plan, graph_.get(), 1, 1e-9);
}

}  // namespace
}  // namespace tenon::cuda
