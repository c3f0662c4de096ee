// SPDX-License-Identifier: Apache-2.0
#include "histogram.hpp"

#include <array>
#include <utility>

namespace tenon::quantizer {

// The smallest exponent with magnitude < kSide * 2^exponent.
int Histogram::exponent_for(double magnitude) {
  if (magnitude == 0) return kSmallest;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude < 2^exponent
  return std::max(exponent - 12, kSmallest);
}
static_assert(Histogram::kSide == 1 << 12);

void Histogram::widen(int exponent) {
  if (counts_.empty()) counts_.resize(2 * kSide, 0);
  if (exponent <= exponent_) return;
  int shift = std::min(exponent - exponent_, 14);  // by then all is in the two bins at zero
  std::vector<uint64_t> merged(2 * kSide, 0);
  for (int64_t i = -kSide; i < kSide; ++i)
    merged[static_cast<size_t>((i >> shift) + kSide)] += counts_[static_cast<size_t>(i + kSide)];
  counts_ = std::move(merged);
  exponent_ = exponent;
}

template <class T>
void Histogram::add(const T* data, size_t n) {
  uint64_t not_finite = all_.not_finite;
  all_.add(data, n);
  if (all_.seen == 0) return;
  widen(exponent_for(all_.magnitude()));
  const T scale = static_cast<T>(std::ldexp(1.0, -exponent_));
  bool exact = scale > 0 && std::isfinite(scale);  // a power of two: the product is exact
  if (exact && not_finite == all_.not_finite) return count_all(data, n, scale);
  for (size_t i = 0; i < n; ++i) {
    if (!(std::abs(data[i]) <= std::numeric_limits<T>::max())) continue;
    double place = std::ldexp(static_cast<double>(data[i]), -exponent_);
    int64_t bin = static_cast<int64_t>(place);
    bin -= place < static_cast<double>(bin);  // floor
    ++counts_[static_cast<size_t>(bin + kSide)];
  }
}

// Bins of a block first, which runs on vectors, then the counts. Neighbours often fall into one
// bin, as the zeros behind a ReLU do, and each count would wait for the one before: four tables
// take turns.
template <class T>
void Histogram::count_all(const T* data, size_t n, T scale) {
  constexpr size_t kBlock = 1024, kTables = 4, kWorthIt = 1 << 14;
  std::vector<uint32_t> tables(n < kWorthIt ? 0 : kTables * 2 * kSide, 0);
  std::array<int32_t, kBlock> bins;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    size_t count = std::min(kBlock, n - begin);
    for (size_t i = 0; i < count; ++i) {
      T place = data[begin + i] * scale;
      auto bin = static_cast<int32_t>(place);
      bins[i] = bin - (place < static_cast<T>(bin)) + static_cast<int32_t>(kSide);  // floor
    }
    for (size_t i = 0; i < count; ++i) {
      auto bin = static_cast<size_t>(bins[i]);
      if (tables.empty()) {
        ++counts_[bin];
      } else {
        ++tables[kTables * bin + i % kTables];
      }
    }
    // No count of 32 bits overflows.
    if (!tables.empty() && (begin / kBlock) % (1 << 20) == (1 << 20) - 1) drain(&tables);
  }
  drain(&tables);
}

void Histogram::drain(std::vector<uint32_t>* tables) {
  size_t per_bin = tables->size() / counts_.size();
  for (size_t i = 0; i < tables->size(); ++i)
    counts_[i / per_bin] += std::exchange((*tables)[i], 0);
}

template void Histogram::add<float>(const float*, size_t);
template void Histogram::add<double>(const double*, size_t);

void Histogram::add(const Histogram& other) {
  all_.add(other.all_);
  if (other.counts_.empty()) return;
  Histogram theirs = other;
  int exponent = exponent_for(all_.magnitude());
  widen(exponent);
  theirs.widen(exponent);
  for (size_t i = 0; i < counts_.size(); ++i)
    counts_[i] += theirs.counts_[i];
}

uint64_t Histogram::count(int64_t i) const {
  return counts_.empty() ? 0 : counts_[static_cast<size_t>(i + kSide)];
}

std::vector<uint64_t> Histogram::magnitudes() const {
  double largest = all_.magnitude() / width();
  size_t bins = std::min<size_t>(kSide, static_cast<size_t>(largest) + 1);
  std::vector<uint64_t> out(bins, 0);
  for (int64_t i = 0; i < static_cast<int64_t>(bins); ++i)
    out[static_cast<size_t>(i)] = count(i) + count(-i - 1);
  return out;
}

double Histogram::rounding_error(double low, double high, double steps) const {
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  double scale = (high - low) / steps, error = 0;
  if (scale == 0) return std::numeric_limits<double>::infinity();
  double zero = std::nearbyint(-low / scale);
  for (int64_t i = -kSide; i < kSide; ++i) {
    if (count(i) == 0) continue;
    double x = (static_cast<double>(i) + 0.5) * width();
    double q = std::clamp(std::nearbyint(x / scale) + zero, 0.0, steps);
    double back = (q - zero) * scale;
    error += static_cast<double>(count(i)) * (x - back) * (x - back);
  }
  return error;
}

nlohmann::json Histogram::save() const {
  nlohmann::json out = to_json(all_);
  nlohmann::json bins = nlohmann::json::array(), counts = nlohmann::json::array();
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    bins.push_back(i);
    counts.push_back(counts_[i]);
  }
  out.update({{"kind", "histogram"}, {"exponent", exponent_}, {"bins", bins}, {"counts", counts}});
  return out;
}

Result<Histogram> Histogram::load(const nlohmann::json& saved) {
  auto broken = [] { return invalid("the saved state of an observer is broken"); };
  Histogram out;
  TN_TRY(all, extremes_in(saved));
  out.all_ = all;
  for (const char* key : {"bins", "counts"})
    if (!saved.contains(key) || !saved[key].is_array()) return broken();
  if (!saved.contains("exponent") || !saved["exponent"].is_number_integer() ||
      saved["bins"].size() != saved["counts"].size())
    return broken();
  if (all.seen == 0) return out;
  out.exponent_ = saved["exponent"];
  if (out.exponent_ != exponent_for(all.magnitude())) return broken();
  out.counts_.resize(2 * kSide, 0);
  for (size_t i = 0; i < saved["bins"].size(); ++i) {
    const nlohmann::json &bin = saved["bins"][i], &count = saved["counts"][i];
    if (!bin.is_number_unsigned() || !count.is_number_unsigned() || bin >= 2 * kSide)
      return broken();
    out.counts_[bin.get<size_t>()] = count;
  }
  return out;
}

}  // namespace tenon::quantizer
