// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mean and deviation of each index of an axis, over batches.

#include <cmath>
#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon::quantizer {

class ChannelSpread {
 public:
  explicit ChannelSpread(int64_t axis) : axis_(axis) {}

  void see(const DLTensor& t) {
    const int64_t channels = t.shape[axis_];
    int64_t inner = 1;
    for (int64_t d = axis_ + 1; d < t.ndim; ++d)
      inner *= t.shape[d];
    sums_.resize(static_cast<size_t>(channels));
    squares_.resize(static_cast<size_t>(channels));
    const auto* data = data_of<const float>(t);
    for (int64_t i = 0, n = element_count(t); i < n; ++i) {
      const auto c = static_cast<size_t>(i / inner % channels);
      const auto x = static_cast<double>(data[i]);
      sums_[c] += x;
      squares_[c] += x * x;
    }
    if (channels > 0) count_ += static_cast<double>(element_count(t) / channels);
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
