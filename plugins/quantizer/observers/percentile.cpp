// SPDX-License-Identifier: Apache-2.0
// "quantizer.observer.percentile": cuts off a share of the numbers (McKinstry et al., 2018):
// symmetric, of the magnitudes; else half of the share on each side.
#include "histogram_observer.hpp"

namespace tenon::quantizer {
namespace {

class Percentile {
 public:
  static Result<Percentile> from(const Options& options) {
    Percentile out;
    out.kept_ = options.number("percentile", 99.99) / 100;
    return out;
  }
  std::pair<double, double> ends(const Histogram& histogram, int, bool symmetric) const {
    double total = static_cast<double>(histogram.all().seen);
    if (symmetric) {
      std::vector<uint64_t> bins = histogram.magnitudes();
      double below = 0;
      size_t i = 0;
      while (i < bins.size() && (below += static_cast<double>(bins[i])) < kept_ * total)
        ++i;
      double end = static_cast<double>(i + 1) * histogram.width();
      return {-end, end};
    }
    double cut = (1 - kept_) / 2 * total;
    int64_t first = -Histogram::kSide, last = Histogram::kSide - 1;
    for (double out = 0; first < last; ++first)
      if ((out += static_cast<double>(histogram.count(first))) > cut) break;
    for (double out = 0; last > first; --last)
      if ((out += static_cast<double>(histogram.count(last))) > cut) break;
    return {static_cast<double>(first) * histogram.width(),
            static_cast<double>(last + 1) * histogram.width()};
  }

 private:
  double kept_ = 0.9999;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_OBSERVER(percentile,
               tenon::quantizer::HistogramObserver<tenon::quantizer::Percentile>,
               "quantizer.observer.percentile",
               "cuts off a share of the numbers",
               R"({"properties": {
    "percentile": {"type": "number", "minimum": 50, "maximum": 100, "default": 99.99,
                   "description": "percentage of the elements inside of the range"},
    )" TENON_OBSERVER_OPTIONS "}}")
