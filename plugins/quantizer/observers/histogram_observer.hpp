// SPDX-License-Identifier: Apache-2.0
#pragma once
// An observer that chooses its range from a histogram. Choice is a class with
//   static Result<Choice> from(const Options&);
//   std::pair<double, double> ends(const Histogram&, int bits, bool symmetric) const;

#include <utility>

#include "histogram.hpp"

namespace tenon::quantizer {

template <class Choice>
class HistogramObserver {
 public:
  static Result<HistogramObserver> create(tn_ctx*, const Options& options) {
    HistogramObserver out;
    TN_TRY(choice, Choice::from(options));
    out.choice_ = choice;
    out.bits_ = static_cast<int>(options.integer("bits", 8));
    out.symmetric_ = options.flag("symmetric");
    return out;
  }
  Status observe(const DLTensor& tensor) {
    return with_floats(tensor, [&](const auto* data, size_t n) { histogram_.add(data, n); });
  }
  Status save(Sink& sink) const { return sink.write(histogram_.save().dump()); }
  Status merge(std::string_view saved) {
    TN_TRY(parsed, parse_saved(saved, "histogram"));
    TN_TRY(other, Histogram::load(parsed));
    histogram_.add(other);
    return {};
  }
  Result<tn_range> range() const {
    const Extremes& all = histogram_.all();
    if (all.seen == 0 || all.magnitude() == 0)
      return make_range(all, all.low, all.high, symmetric_);
    auto [low, high] = choice_.ends(histogram_, bits_, symmetric_);
    // Never beyond what was seen.
    low = std::clamp(low, all.low, all.high);
    high = std::clamp(high, all.low, all.high);
    return make_range(all, low, high, symmetric_);
  }

 private:
  Choice choice_;
  int bits_ = 8;
  bool symmetric_ = false;
  Histogram histogram_;
};

}  // namespace tenon::quantizer
