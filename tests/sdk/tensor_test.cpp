// SPDX-License-Identifier: Apache-2.0
// Shapes that no memory could hold: a file may state any.
#include "tenon/sdk/tensor.hpp"

#include <gtest/gtest.h>

namespace tenon {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

TEST(ElementCount, OfMoreThanCanBeCountedIsTheLargest) {
  EXPECT_EQ(element_count(std::vector<int64_t>{3, 4, 5}), 60);
  EXPECT_EQ(element_count(std::vector<int64_t>{}), 1);
  EXPECT_EQ(element_count(std::vector<int64_t>{kHuge, kHuge}), INT64_MAX);
  EXPECT_EQ(element_count(std::vector<int64_t>{kHuge, kHuge, kHuge, 2}), INT64_MAX);
  EXPECT_EQ(element_count(std::vector<int64_t>{kHuge, kHuge, 0}), 0);
}

TEST(DenseView, StridesOfAnyShapeAreDefined) {
  const DenseView small(TN_F32, std::vector<int64_t>{3, 0, 5});
  EXPECT_EQ(std::vector<int64_t>((*small).strides, (*small).strides + 3),
            (std::vector<int64_t>{5, 5, 1}));
  const DenseView huge(TN_F32, std::vector<int64_t>{kHuge, kHuge, kHuge, 2});  // seen by UBSan
  EXPECT_EQ((*huge).strides[2], 2);
}

}  // namespace
}  // namespace tenon
