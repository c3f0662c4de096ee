// SPDX-License-Identifier: Apache-2.0
// Columns that are sorted beside each other, each against std::sort.

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "kernels/kernel_table.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Sort : public EachLevel {};

using Column = std::vector<std::pair<int64_t, int64_t>>;

std::vector<Column> columns_of(const std::vector<int64_t>& keys,
                               const std::vector<int64_t>& indices) {
  std::vector<Column> columns(kSortColumns);
  for (size_t i = 0; i < keys.size(); ++i)
    columns[i % kSortColumns].emplace_back(keys[i], indices[i]);
  return columns;
}

TEST_P(Sort, PutsEachColumnInOrderWithItsIndices) {
  std::mt19937_64 random(1);
  for (const int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33, 100, 256, 300}) {
    std::vector<int64_t> keys, indices;
    for (int64_t i = 0; i < n * kSortColumns; ++i) {
      keys.push_back(i % 17 == 0 ? INT64_MIN : static_cast<int64_t>(random() % 21) - 10);
      indices.push_back(i / kSortColumns);
    }
    std::vector<Column> want = columns_of(keys, indices);
    for (Column& column : want)
      std::sort(column.begin(), column.end());
    context_.table->sort_columns({.keys = keys.data(), .indices = indices.data(), .n = n});
    EXPECT_EQ(columns_of(keys, indices), want) << n << " rows";
  }
}

TEST_P(Sort, PutsKeysAloneInOrder) {
  std::mt19937_64 random(2);
  for (const int64_t n : {1, 2, 6, 64, 101}) {
    std::vector<int64_t> keys(static_cast<size_t>(n * kSortColumns));
    for (int64_t& key : keys)
      key = static_cast<int64_t>(random());
    std::vector<Column> want = columns_of(keys, keys);
    for (Column& column : want)
      std::sort(column.begin(), column.end());
    context_.table->sort_columns({.keys = keys.data(), .n = n});
    EXPECT_EQ(columns_of(keys, keys), want) << n << " rows";
  }
}

TENON_EACH_LEVEL(Sort);

}  // namespace
}  // namespace tenon::onednn::kernels
