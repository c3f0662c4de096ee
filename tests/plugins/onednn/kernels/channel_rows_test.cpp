// SPDX-License-Identifier: Apache-2.0
// Pixels joined, shuffled and split, byte by byte.

#include "kernels/channel_rows.h"

#include <numeric>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

std::vector<uint8_t> random_bytes(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(n));
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>(random());
  return bytes;
}

struct Case {
  int64_t pixels;
  std::vector<int64_t> pieces;   // channels
  int64_t gap;                   // bytes between the pixels of a piece
  std::vector<int64_t> results;  // channels
};

// Where each channel of the results comes from.
using Order = std::vector<int32_t> (*)(int64_t channels);

std::vector<int32_t> kept(int64_t channels) {
  std::vector<int32_t> order(static_cast<size_t>(channels));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

template <int64_t kGroups>
std::vector<int32_t> shuffled(int64_t channels) {
  std::vector<int32_t> order;
  for (int64_t i = 0; i < channels; ++i)
    order.push_back(static_cast<int32_t>(i % kGroups * (channels / kGroups) + i / kGroups));
  return order;
}

std::vector<int32_t> at_random(int64_t channels) {
  std::vector<int32_t> order = kept(channels);
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  return order;
}

void expect_moved(const Context& context, const Case& c, Order order) {
  const int64_t channels = std::accumulate(c.pieces.begin(), c.pieces.end(), int64_t{0});
  SCOPED_TRACE(testing::Message() << c.pixels << " pixels of " << channels << " channels");
  const std::vector<int32_t> from = order(channels);
  const std::vector<uint8_t> table = random_bytes(256, 9);
  ChannelRowsArgs args;
  args.pixels = c.pixels;
  std::vector<std::vector<uint8_t>> sources, results;
  std::vector<uint8_t> joined(static_cast<size_t>(c.pixels * channels));
  int64_t at = 0;
  for (int64_t n : c.pieces) {
    const int64_t stride = n + c.gap;
    sources.push_back(random_bytes(c.pixels * stride, static_cast<uint32_t>(at)));
    const bool maps = sources.size() % 2 == 0;
    args.pieces[args.n_pieces++] = {sources.back().data(), stride, n,
                                    maps ? table.data() : nullptr};
    for (int64_t i = 0; i < c.pixels * n; ++i) {
      const uint8_t byte = sources.back()[static_cast<size_t>(i / n * stride + i % n)];
      joined[static_cast<size_t>(i / n * channels + at + i % n)] = maps ? table[byte] : byte;
    }
    at += n;
  }
  std::vector<std::vector<int32_t>> orders;
  std::vector<std::vector<ChannelChunk>> chunks;
  auto first = from.begin();
  for (int64_t n : c.results) {
    orders.emplace_back(first, first + n);
    first += n;
    chunks.push_back(plan_channel_chunks(orders.back()));
    results.emplace_back(static_cast<size_t>(c.pixels * n) + 1, uint8_t{0xEE});
  }
  for (size_t i = 0; i < results.size(); ++i)
    args.results[args.n_results++] = {results[i].data(), c.results[i], orders[i].data(),
                                      chunks[i].empty() ? nullptr : chunks[i].data()};
  channel_rows(context, args);
  for (size_t r = 0; r < results.size(); ++r) {
    const int64_t n = c.results[r];
    for (int64_t i = 0; i < c.pixels * n; ++i)
      ASSERT_EQ(
          results[r][static_cast<size_t>(i)],
          joined[static_cast<size_t>(i / n * channels + orders[r][static_cast<size_t>(i % n)])])
          << "result " << r << " at " << i;
    ASSERT_EQ(results[r].back(), 0xEE);
  }
}

class ChannelRows : public EachLevel {};

TEST_P(ChannelRows, MovesEachByteToItsPlace) {
  const Case cases[] = {
      {49, {58, 58}, 0, {116}},
      {33, {58, 58}, 58, {58, 58}},
      {7, {232, 232}, 3, {232, 232}},
      {200, {12, 4, 8}, 0, {20, 4}},
      {5, {64, 64, 64, 64}, 0, {64, 192}},
      {1, {1000, 1096}, 1, {2096}},
      {70, {3, 1}, 0, {2, 1, 1}},
  };
  for (const Case& c : cases)
    for (Order order : {kept, shuffled<2>, shuffled<4>, at_random})
      expect_moved(context_, c, order);
}

TEST(ChannelChunks, AreLeftOutWhereTooManyPlacesMeet) {
  EXPECT_EQ(plan_channel_chunks(shuffled<4>(512)).size(), 8U);
  EXPECT_TRUE(plan_channel_chunks(shuffled<8>(512)).empty());
}

TENON_EACH_LEVEL(ChannelRows);

}  // namespace
}  // namespace tenon::onednn::kernels
