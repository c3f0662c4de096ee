// SPDX-License-Identifier: Apache-2.0
// Gathers and the transformer's front, with good and bad indices.

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

// tables [50, 384] f32, [20, 384] bf16, [2, 384] f32
TEST_P(Gather, EmbedsAndNormalises) {
  constexpr int64_t kN = 384;
  const std::vector<float> words = uniform(50 * kN, -1, 1);
  const std::vector<float> places = uniform(20 * kN, -1, 1, 2);
  const std::vector<float> kinds = uniform(2 * kN, -1, 1, 3);
  std::vector<uint16_t> narrow(20 * kN);
  std::vector<float> rounded(20 * kN);
  context_.table->store_f32(places.data(), 20 * kN, {narrow.data(), ElementType::kBf16, {}}, 0,
                            false);
  context_.table->load_f32({narrow.data(), ElementType::kBf16, {}}, 0, 20 * kN, rounded.data());
  const std::vector<int64_t> ids[3] = {{3, 49, -1, 7}, {0, 1, 2, 19}, {0, 1, 1, 0}};
  std::vector<float> y(4 * kN);
  EmbeddingArgs args{
      .n_tables = 3,
      .tables = {{words.data()}, {narrow.data(), ElementType::kBf16, {}}, {kinds.data()}},
      .ids = {ids[0].data(), ids[1].data(), ids[2].data()}};
  args.norm = {.dst = {y.data()}, .rows = 4, .n = kN, .epsilon = 1e-12F};
  const int64_t table_rows[] = {50, 20, 2};
  EXPECT_EQ(embed(context_, args, table_rows), -1);

  for (uint64_t r = 0; r < 4; ++r) {
    const uint64_t word = ids[0][r] < 0 ? 49 : static_cast<uint64_t>(ids[0][r]);
    std::vector<double> x(kN);
    double mean = 0;
    double square = 0;
    for (uint64_t i = 0; i < kN; ++i) {
      x[i] = static_cast<double>(words[word * kN + i]) +
             rounded[static_cast<uint64_t>(ids[1][r]) * kN + i] +
             kinds[static_cast<uint64_t>(ids[2][r]) * kN + i];
      mean += x[i] / kN;
    }
    for (double v : x)
      square += (v - mean) * (v - mean) / kN;
    for (uint64_t i = 0; i < kN; ++i) {
      ASSERT_NEAR(y[r * kN + i], (x[i] - mean) / std::sqrt(square), 2e-6);
    }
  }
}

TEST_P(Gather, EmbeddingRefusesIdsOutOfRange) {
  const std::vector<float> table(20, 1.0F);
  const std::vector<int64_t> ids = {0, 4, 5};
  std::vector<float> y(12, 7.0F);
  EmbeddingArgs args{.n_tables = 1, .tables = {{table.data()}}, .ids = {ids.data()}};
  args.norm = {.dst = {y.data()}, .rows = 3, .n = 4};
  const int64_t table_rows[] = {5};

  EXPECT_EQ(embed(context_, args, table_rows), 2);
  EXPECT_EQ(y[0], 7.0F);
}

TENON_EACH_LEVEL(Gather);

}  // namespace
}  // namespace tenon::onednn::kernels
