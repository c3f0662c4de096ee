// SPDX-License-Identifier: Apache-2.0
// Gathers with good and bad indices.

#include "kernels/gather.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Gather : public EachLevel {};

TEST_P(Gather, TakesRowsOfAnyAxis) {
  const std::vector<float> src = uniform(3 * 10 * 6, -1, 1);
  const std::vector<int32_t> ids = {9, 0, -1, -10, 4};
  std::vector<float> dst(3 * 5 * 6);
  EXPECT_EQ(
      gather_rows(context_, {src.data(), dst.data(), 3, 10, 24, ids.data(), ElementType::kI32, 5}),
      -1);

  for (uint64_t i = 0; i < dst.size(); ++i) {
    const int64_t id = ids[i / 6 % 5];
    const uint64_t row = i / 30 * 10 + static_cast<uint64_t>(id < 0 ? id + 10 : id);
    EXPECT_EQ(dst[i], src[row * 6 + i % 6]);
  }
}

TEST_P(Gather, RefusesIndicesOutOfRange) {
  const std::vector<float> src(10);
  std::vector<float> dst(3, 7.0F);
  for (int64_t bad : {int64_t{10}, int64_t{-11}, INT64_MIN, INT64_MAX}) {
    const std::vector<int64_t> ids = {0, bad, 1};
    EXPECT_EQ(
        gather_rows(context_, {src.data(), dst.data(), 1, 10, 4, ids.data(), ElementType::kI64, 3}),
        1);
    EXPECT_EQ(dst, std::vector<float>(3, 7.0F));
  }
}

TENON_EACH_LEVEL(Gather);

}  // namespace
}  // namespace tenon::onednn::kernels
