// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tile registers of one thread: two left operands (4, 5), two right ones (6, 7), and the sums
// of their four products (0 to 3).

#include <cstdint>
#include <initializer_list>

#include <immintrin.h>

namespace tenon::onednn::kernels::amx {

// The palette of LDTILECFG.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Configures the tiles while it lives. Tiles hold nothing across calls of other code: oneDNN has
// configurations of its own, and live tiles make switches between threads dearer.
class Tiles {
 public:
  Tiles() = default;
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  ~Tiles() { _tile_release(); }

  // Rows of the upper and the lower left operand; the latter may have none.
  void configure(int upper, int lower) {
    if (upper == upper_ && lower == lower_) return;
    upper_ = upper;
    lower_ = lower;
    TileConfig config;
    auto set = [&](int tile, int rows) {
      config.rows[tile] = static_cast<uint8_t>(rows);
      config.column_bytes[tile] = rows == 0 ? 0 : 64;
    };
    for (int tile : {0, 1, 4})
      set(tile, upper);
    for (int tile : {2, 3, 5})
      set(tile, lower);
    for (int tile : {6, 7})
      set(tile, 16);
    asm volatile("" ::: "memory");
    _tile_loadconfig(&config);
  }

 private:
  int upper_ = -1;
  int lower_ = -1;
};

}  // namespace tenon::onednn::kernels::amx
