// SPDX-License-Identifier: Apache-2.0
// Transposes, slices and broadcasts against index arithmetic.

#include "kernels/copy.h"

#include <cstring>
#include <numeric>
#include <span>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Copy : public EachLevel {};

// Distinct elements, as far as their size allows.
std::vector<uint8_t> elements(int64_t n, int64_t size) {
  std::vector<uint8_t> bytes(static_cast<uint64_t>(n * size));
  std::mt19937 random(1);
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>(random());
  return bytes;
}

// src: dims dense -> dst: [dims[perm[0]], dims[perm[1]], ...] dense
StridedCopy make_transpose(const void* src,
                           void* dst,
                           int64_t element_bytes,
                           std::span<const int64_t> dims,
                           std::span<const int64_t> perm) {
  StridedCopy copy{src, dst, element_bytes, static_cast<int64_t>(dims.size())};
  int64_t strides[kCopyMaxRank] = {};
  int64_t stride = 1;
  for (uint64_t d = dims.size(); d-- > 0; stride *= dims[d])
    strides[d] = stride;
  stride = 1;
  for (uint64_t d = dims.size(); d-- > 0; stride *= copy.dims[d]) {
    const uint64_t from = static_cast<uint64_t>(perm[d]);
    copy.dims[d] = dims[from];
    copy.src_strides[d] = strides[from];
    copy.dst_strides[d] = stride;
  }
  return copy;
}

void expect_copied(const StridedCopy& copy, const char* what) {
  const char* src = static_cast<const char*>(copy.src);
  const char* dst = static_cast<const char*>(copy.dst);
  int64_t count = 1;
  for (int64_t d = 0; d < copy.rank; ++d)
    count *= copy.dims[d];
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t from = 0;
    int64_t to = 0;
    for (int64_t d = copy.rank - 1; d >= 0; --d) {
      from += rest % copy.dims[d] * copy.src_strides[d];
      to += rest % copy.dims[d] * copy.dst_strides[d];
      rest /= copy.dims[d];
    }
    ASSERT_EQ(std::memcmp(src + from * copy.element_bytes, dst + to * copy.element_bytes,
                          static_cast<uint64_t>(copy.element_bytes)),
              0)
        << what << " at " << i;
  }
}

TEST_P(Copy, TransposesEveryPermutation) {
  const std::vector<std::vector<int64_t>> shapes = {{100},
                                                    {65, 130},
                                                    {17, 3},
                                                    {5, 16, 33},
                                                    {2, 12, 20, 32},
                                                    {3, 1, 7, 19, 5},
                                                    {2, 3, 4, 5, 6, 7},
                                                    {2, 3, 4100},
                                                    {4, 65, 9},
                                                    {2, 70, 2},
                                                    {83, 47}};
  for (const std::vector<int64_t>& dims : shapes) {
    const int64_t count =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    for (int64_t size : {1, 2, 4, 8}) {
      const std::vector<uint8_t> src = elements(count, size);
      std::vector<int64_t> perm(dims.size());
      std::iota(perm.begin(), perm.end(), 0);
      for (int n = 0; n < 130; ++n) {
        std::vector<uint8_t> dst(src.size() + 1, 99);
        const StridedCopy copy = make_transpose(src.data(), dst.data(), size, dims, perm);
        strided_copy(context_, copy);
        expect_copied(copy, "transpose");
        EXPECT_EQ(dst.back(), 99);
        if (!std::next_permutation(perm.begin(), perm.end())) break;
      }
    }
  }
}

// Long next to short, dense and with gaps, in the order of memory or not.
TEST_P(Copy, MovesShortRows) {
  for (int64_t size : {1, 2, 4, 8}) {
    const std::vector<uint8_t> src = elements(3000 * 8, size);
    for (int64_t columns = 1; columns <= 6; ++columns) {
      for (int64_t step : {1, 2, -1}) {
        std::vector<uint8_t> dst(static_cast<uint64_t>(3 * 900 * 7 * size) + 1, 99);
        const StridedCopy copy{src.data() + 6 * size, dst.data(),      size,        3,
                               {3, 900, columns},     {7200, 8, step}, {6300, 7, 1}};
        strided_copy(context_, copy);
        expect_copied(copy, "short rows");
        EXPECT_EQ(dst.back(), 99);
        const StridedCopy transposed{src.data() + 6 * size, dst.data(),      size,          3,
                                     {3, columns, 900},     {7200, step, 8}, {6300, 900, 1}};
        strided_copy(context_, transposed);
        expect_copied(transposed, "short columns");
        EXPECT_EQ(dst.back(), 99);
      }
    }
  }
}

// As channels are for several filters of each: side by side, in rows with gaps, and in many pieces.
TEST_P(Copy, RepeatsNeighbours) {
  for (int64_t size : {1, 2, 4, 8}) {
    const std::vector<uint8_t> src = elements(3 * 5000, size);
    for (int64_t times : {2, 3, 4, 5, 9}) {
      for (int64_t n : {1, 3, 17, 4999}) {
        std::vector<uint8_t> dst(static_cast<uint64_t>(3 * (n * times + 1) * size) + 1, 99);
        const StridedCopy copy{src.data(),
                               dst.data(),
                               size,
                               3,
                               {3, n, times},
                               {5000, 1, 0},
                               {n * times + 1, times, 1}};
        strided_copy(context_, copy);
        expect_copied(copy, "repeated");
        EXPECT_EQ(dst.back(), 99);
      }
    }
  }
}

TEST_P(Copy, SlicesBackwardsAndBroadcasts) {
  const std::vector<uint8_t> src = elements(40 * 50, 2);
  std::vector<uint16_t> dst(20 * 25 * 3);
  // [::-2, 49::-2] expanded by 3 in the middle
  const StridedCopy copy{
      src.data() + (39 * 50 + 49) * 2, dst.data(), 2, 3, {20, 3, 25}, {-100, 0, -2}, {75, 25, 1}};
  strided_copy(context_, copy);
  expect_copied(copy, "slice");
  const StridedCopy spread{src.data(), dst.data(), 2, 2, {30, 50}, {50, 0}, {50, 1}};
  strided_copy(context_, spread);
  expect_copied(spread, "expand");
  const StridedCopy rows{src.data(), dst.data(), 2, 2, {30, 50}, {1, 0}, {50, 1}};
  strided_copy(context_, rows);
  expect_copied(rows, "each element fills a row");
}

// The last element of the source is the last one that is read.
TEST_P(Copy, PicksEverySecondElement) {
  for (int64_t size : {1, 2, 4, 8})
    for (int64_t n : {1, 15, 16, 17, 64, 131}) {
      const std::vector<uint8_t> src = elements(9 * (2 * n - 1), size);
      std::vector<uint8_t> dst(static_cast<uint64_t>(9 * n * size) + 1, 99);
      const StridedCopy copy{src.data(), dst.data(), size, 2, {9, n}, {2 * n - 1, 2}, {n, 1}};
      strided_copy(context_, copy);
      expect_copied(copy, "every second");
      EXPECT_EQ(dst.back(), 99);
    }
}

TEST_P(Copy, SpreadsOneElementOverAll) {
  for (int64_t size : {1, 2, 4, 8}) {
    const std::vector<uint8_t> src = elements(1, size);
    std::vector<uint8_t> dst(static_cast<uint64_t>(50000 * size));
    const StridedCopy spread{src.data(), dst.data(), size, 2, {500, 100}, {0, 0}, {100, 1}};
    strided_copy(context_, spread);
    expect_copied(spread, "one element");
  }
}

TEST_P(Copy, ConcatenatesRows) {
  const std::vector<uint8_t> a = elements(7 * 13, 1);
  const std::vector<uint8_t> b = elements(7 * 20, 1);
  std::vector<uint8_t> dst(7 * 33);
  copy_rows(context_, a.data(), 13, dst.data(), 33, 13, 7);
  copy_rows(context_, b.data(), 20, dst.data() + 13, 33, 20, 7);

  for (uint64_t r = 0; r < 7; ++r) {
    EXPECT_EQ(std::memcmp(&dst[r * 33], &a[r * 13], 13), 0);
    EXPECT_EQ(std::memcmp(&dst[r * 33 + 13], &b[r * 20], 20), 0);
  }
}

TEST_P(Copy, CopiesScalarsAndNothing) {
  float x = 3;
  float y = 0;
  strided_copy(context_, {&x, &y, 4, 0});
  EXPECT_EQ(y, 3);
  strided_copy(context_, {nullptr, nullptr, 4, 2, {3, 0}, {0, 1}, {0, 1}});
}

TEST_P(Copy, MirrorsWhatIsAboveTheDiagonal) {
  for (int64_t size : {1, 2, 4, 8}) {
    for (int64_t n : {1, 5, 64, 65, 200, 321}) {
      const std::vector<uint8_t> before = elements(n * n, size);
      std::vector<uint8_t> after = before;
      mirror_upper(context_, after.data(), size, n);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          ASSERT_EQ(
              std::memcmp(
                  &after[static_cast<uint64_t>((i * n + j) * size)],
                  &before[static_cast<uint64_t>((std::min(i, j) * n + std::max(i, j)) * size)],
                  static_cast<uint64_t>(size)),
              0)
              << n << " x " << n << " of " << size << " bytes at " << i << ", " << j;
    }
  }
}

TENON_EACH_LEVEL(Copy);

}  // namespace
}  // namespace tenon::onednn::kernels
