// SPDX-License-Identifier: Apache-2.0
#pragma once
// Columns of numbers in rising order, several beside each other, by a sorting network.

#include <cstdint>

namespace tenon::onednn::kernels {

constexpr int64_t kSortColumns = 8;

// keys: [n, kSortColumns], no two of a column alike; or equal ones are in the order of `indices`,
// which is as large and moves with them. Null: nothing moves with the keys.
struct SortArgs {
  int64_t* keys = nullptr;
  int64_t* indices = nullptr;
  int64_t n = 0;
};

}  // namespace tenon::onednn::kernels
