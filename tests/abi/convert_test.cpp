// SPDX-License-Identifier: Apache-2.0
// Which element type becomes which, written out.
#include "tenon/convert.hpp"

#include <set>

#include <gtest/gtest.h>

namespace tenon {
namespace {

const std::set<uint32_t> kWhole{TN_BOOL, TN_I8,  TN_I16, TN_I32, TN_I64,
                                TN_U8,   TN_U16, TN_U32, TN_U64};
const std::set<uint32_t> kReal{TN_F16, TN_BF16, TN_F32, TN_F64};
const std::set<uint32_t> kNeither{TN_I4, TN_U4, TN_DTYPE_NONE};

TEST(Convert, WholeNumbersAreIntegersAndTruthValues) {
  for (uint32_t type : kWhole)
    EXPECT_TRUE(is_whole(type)) << type;
  for (uint32_t type : kReal)
    EXPECT_FALSE(is_whole(type)) << type;
}

TEST(Convert, NumbersBecomeFloatsAndWholeOnesWiderIntegers) {
  std::set<uint32_t> all = kWhole;
  all.insert(kReal.begin(), kReal.end());
  all.insert(kNeither.begin(), kNeither.end());
  for (uint32_t from : all)
    for (uint32_t to : all) {
      bool is_number = !kNeither.contains(from);
      bool is_real = to == TN_F32 || to == TN_F64 || to == TN_F16 || to == TN_BF16;
      bool expected = from == to || (is_number && is_real) ||
                      (kWhole.contains(from) && (to == TN_I32 || to == TN_I64));
      EXPECT_EQ(is_convertible(from, to), expected) << from << " to " << to;
    }
}

}  // namespace
}  // namespace tenon
