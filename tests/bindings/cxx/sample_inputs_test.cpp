// SPDX-License-Identifier: Apache-2.0
#include "tenon/cxx/sample_inputs.hpp"

#include <gtest/gtest.h>

namespace tenon::cxx {
namespace {

double sum_of(const SessionPtr& session, uint32_t dtype) {
  const Tensor made = sample_input(session, {"x", dtype}, {64}, 0);
  double sum = 0;
  for (int64_t i = 0; i < made.size(); ++i)
    sum += std::fabs(made.at(i));
  return sum;
}

TEST(SampleInput, IsRandomForFloatsOfAnyWidthAndZeroForIntegers) {
  const SessionPtr session = std::make_shared<Session>();
  const double wanted = sum_of(session, TN_F64);
  EXPECT_GT(wanted, 20);
  for (uint32_t dtype : {TN_F32, TN_F16, TN_BF16})
    EXPECT_NEAR(sum_of(session, dtype), wanted, 1e-2 * wanted);
  for (uint32_t dtype : {TN_I64, TN_U8, TN_BOOL})
    EXPECT_EQ(sum_of(session, dtype), 0);
}

}  // namespace
}  // namespace tenon::cxx
