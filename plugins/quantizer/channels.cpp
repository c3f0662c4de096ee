// SPDX-License-Identifier: Apache-2.0
#include "channels.hpp"

#include <algorithm>

namespace tenon::quantizer {
namespace {

constexpr int64_t kGrain = 1 << 15;  // numbers that are worth a thread

uint64_t grain_of(int64_t numbers_each) {
  return static_cast<uint64_t>(std::max<int64_t>(1, kGrain / std::max<int64_t>(1, numbers_each)));
}

// In lanes, so that it runs on vectors.
double sum_of(const float* data, int64_t n) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += static_cast<double>(data[i + lane]);
  double sum = 0;
  for (; i < n; ++i)
    sum += static_cast<double>(data[i]);
  for (double lane : lanes)
    sum += lane;
  return sum;
}

// row: [channels, inner].
void shift_row(float* row, int64_t inner, const std::vector<float>& by) {
  if (inner == 1) {
    for (size_t c = 0; c < by.size(); ++c)
      row[c] += by[c];
    return;
  }
  for (float shift : by) {
    for (int64_t i = 0; i < inner; ++i)
      row[i] += shift;
    row += inner;
  }
}

}  // namespace

ByChannel ByChannel::of(const DLTensor& tensor, int64_t axis) {
  const auto [outer, channels, inner] = AxisSplit(shape_of(tensor), axis);
  return {data_of<float>(tensor), outer, channels, inner};
}

void add_channel_sums(tn_ctx* ctx,
                      const ByChannel& from,
                      std::span<const int64_t> positions,
                      double sign,
                      std::vector<double>* sums) {
  const auto channels = static_cast<uint64_t>(from.channels);
  const int64_t each = static_cast<int64_t>(positions.size()) * from.inner;
  double* const to = sums->data();
  parallel_for(ctx, channels, grain_of(each), [&](uint64_t begin, uint64_t end) {
    for (int64_t position : positions) {
      const float* row = from.data + position * from.channels * from.inner;
      if (from.inner == 1) {
        for (uint64_t c = begin; c < end; ++c)
          to[c] += sign * static_cast<double>(row[c]);
      } else {
        for (uint64_t c = begin; c < end; ++c)
          to[c] += sign * sum_of(row + static_cast<int64_t>(c) * from.inner, from.inner);
      }
    }
  });
}

void shift_channels(tn_ctx* ctx, const ByChannel& to, const std::vector<float>& by) {
  const int64_t row_size = to.channels * to.inner;
  parallel_for(ctx, static_cast<uint64_t>(to.outer), grain_of(row_size),
               [&](uint64_t begin, uint64_t end) {
                 for (uint64_t position = begin; position < end; ++position)
                   shift_row(to.data + static_cast<int64_t>(position) * row_size, to.inner, by);
               });
}

}  // namespace tenon::quantizer
