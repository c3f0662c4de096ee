// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mean and deviation of each index of an axis, over batches.

#include <cmath>
#include <vector>

#include "channels.hpp"

namespace tenon::quantizer {

class ChannelSpread {
 public:
  explicit ChannelSpread(int64_t axis) : axis_(axis) {}

  void see(const DLTensor& t) {
    const ByChannel from = ByChannel::of(t, axis_);
    sums_.resize(static_cast<size_t>(from.channels));
    squares_.resize(static_cast<size_t>(from.channels));
    const float* data = from.data;
    for (int64_t position = 0; position < from.outer; ++position)
      for (size_t c = 0; c < sums_.size(); ++c, data += from.inner)
        for (int64_t i = 0; i < from.inner; ++i) {
          const auto x = static_cast<double>(data[i]);
          sums_[c] += x;
          squares_[c] += x * x;
        }
    if (from.channels > 0) count_ += static_cast<double>(from.outer * from.inner);
  }
  size_t channels() const { return sums_.size(); }
  double mean(size_t c) const { return count_ > 0 ? sums_[c] / count_ : 0; }
  // 1 where all are the same.
  double deviation(size_t c) const {
    const double square = count_ > 0 ? squares_[c] / count_ - mean(c) * mean(c) : 0;
    return square > 1e-12 ? std::sqrt(square) : 1;
  }

 private:
  int64_t axis_;
  std::vector<double> sums_, squares_;
  double count_ = 0;
};

}  // namespace tenon::quantizer
