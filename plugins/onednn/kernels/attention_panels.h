// SPDX-License-Identifier: Apache-2.0
#pragma once
// Right operands of attention's products in f32, made for each head as it comes.

#include <algorithm>
#include <cstring>

#include "attention_args.h"
#include "kernel_table.h"

namespace tenon::onednn::kernels {

// dst: [panels][length][kAttentionPanel] of a matrix of that length and so many lanes, whose
// elements lie so far apart; zeros in the lanes that the last panel has too many.
struct AttentionPanels {
  const KernelTable* table;
  int64_t lanes, length;
  int64_t lane_stride, step_stride;

  void pack(const float* src, float* dst) const {
    for (int64_t lane = 0; lane < lanes; lane += kAttentionPanel) {
      const int64_t width = std::min(kAttentionPanel, lanes - lane);
      if (width < kAttentionPanel) std::fill_n(dst, length * kAttentionPanel, 0.0F);
      pack_panel(src + lane * lane_stride, width, dst);
      dst += length * kAttentionPanel;
    }
  }

  void pack_panel(const float* src, int64_t width, float* dst) const {
    if (step_stride == 1 && lane_stride != 1)
      return table->transpose_tile({src, dst, lane_stride, kAttentionPanel, width, length, 4});
    for (int64_t i = 0; i < length; ++i) {
      const float* const row = src + i * step_stride;
      float* const to = dst + i * kAttentionPanel;
      if (lane_stride == 1) {
        std::memcpy(to, row, static_cast<size_t>(width) * sizeof(float));
      } else {
        table->load_strided({row, ElementType::kF32}, 0, lane_stride, width, to);
      }
    }
  }
};

}  // namespace tenon::onednn::kernels
