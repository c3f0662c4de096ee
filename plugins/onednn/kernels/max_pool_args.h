// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the pooling of bytes, as level/ sees them too; contract in max_pool.h.

#include <cstdint>

namespace tenon::onednn::kernels {

struct MaxPoolArgs {
  const void* src = nullptr;  // [images, height, width, channels]
  void* dst = nullptr;        // [images, out_height, out_width, channels]
  bool is_signed = false;
  int64_t images = 0;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t kernel[2] = {1, 1};  // of rows, of columns
  int64_t stride[2] = {1, 1};
  int64_t pad[2] = {0, 0};  // above, to the left
};

}  // namespace tenon::onednn::kernels
