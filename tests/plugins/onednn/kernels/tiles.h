// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fixture of tests that need AMX, and operands for both of its types, memory that ends where
// they do.

#include <cstring>

#include "guarded.h"
#include "kernels/tile_product.h"
#include "levels.h"

namespace tenon::onednn::kernels {

class OnTiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_tiles()) GTEST_SKIP() << "no AMX on this CPU, or no permission to use it";
  }
};

inline uint16_t to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}
inline float from_bf16(uint16_t word) {
  const uint32_t bits = uint32_t{word} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline std::vector<uint16_t> random_bf16(uint64_t n, float low, float high, uint32_t seed) {
  std::vector<uint16_t> words;
  for (float value : uniform(n, low, high, seed))
    words.push_back(to_bf16(value));
  return words;
}

}  // namespace tenon::onednn::kernels
