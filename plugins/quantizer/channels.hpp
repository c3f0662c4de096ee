// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activations by channel: sums over all other axes, and shifts. Loops run on the host's threads;
// results do not depend on how many there are.

#include <cstdint>
#include <span>
#include <vector>

#include "tenon/sdk/run.hpp"
#include "tenon/sdk/tensor.hpp"

namespace tenon::quantizer {

// An f32 tensor as [outer, channels, inner].
struct ByChannel {
  float* data = nullptr;
  int64_t outer = 0, channels = 0, inner = 0;

  // The channels lie along `axis`, which the tensor has.
  static ByChannel of(const DLTensor& tensor, int64_t axis);
};

// sums[c] += sign * the sum of channel c at these positions of the outer axes.
void add_channel_sums(tn_ctx* ctx,
                      const ByChannel& from,
                      std::span<const int64_t> positions,
                      double sign,
                      std::vector<double>* sums);

// Adds by[c] to all numbers of channel c.
void shift_channels(tn_ctx* ctx, const ByChannel& to, const std::vector<float>& by);

}  // namespace tenon::quantizer
