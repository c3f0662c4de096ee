// SPDX-License-Identifier: Apache-2.0
#pragma once
// A histogram of a stream in memory that does not grow. Bins are [i, i + 1) * width with a width
// that is a power of two, so a stream that outgrows the bins only merges whole neighbours. Width
// and counts follow from the set of numbers alone: the order of the stream and its division into
// parts that are merged later change nothing, to the last count. Between kSide / 2 and kSide bins
// are in use on the longer side: at least 2,048.

#include <string_view>
#include <vector>

#include "extremes.hpp"

namespace tenon::quantizer {

class Histogram {
 public:
  static constexpr int64_t kSide = 4096;  // bins on each side of zero

  template <class T>
  void add(const T* data, size_t n);
  void add(const Histogram& other);

  const Extremes& all() const { return all_; }
  double width() const { return std::ldexp(1.0, exponent_); }
  // Bin i covers [i, i + 1) * width, i from -kSide to kSide - 1.
  uint64_t count(int64_t i) const;
  // Bins of |x| from 0 up to the largest magnitude: the sum of both sides.
  std::vector<uint64_t> magnitudes() const;
  // The sum of squared differences when all that was seen is stored in this range, extended to
  // hold 0, with so many steps; numbers beyond its ends take the ends.
  double rounding_error(double low, double high, double steps) const;

  nlohmann::json save() const;
  static Result<Histogram> load(const nlohmann::json& saved);

 private:
  static constexpr int kSmallest = -1000;  // exponent of bins that saw only zeros
  static int exponent_for(double magnitude);
  void widen(int exponent);
  // All finite, in bins that are wide enough.
  template <class T>
  void count_all(const T* data, size_t n, T scale);
  void drain(std::vector<uint32_t>* tables);

  Extremes all_;
  int exponent_ = kSmallest;
  std::vector<uint64_t> counts_;  // 2 * kSide, or empty before the first finite number
};

}  // namespace tenon::quantizer
