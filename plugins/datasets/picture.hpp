// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pictures of 8-bit samples: decoding (JPEG, PNG, BMP) and resizing, by stb.

#include <cstdint>
#include <string_view>
#include <vector>

#include "tenon/sdk/status.hpp"

namespace tenon::datasets {

struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> samples;  // [height, width, channels]
};

// channels: 1 or 3; the decoder converts.
Result<Picture> decode(std::string_view bytes, int64_t channels);
// Triangle filter, widened when it shrinks (bilinear with antialiasing).
Result<Picture> resized(const Picture& from, int64_t height, int64_t width);

}  // namespace tenon::datasets
