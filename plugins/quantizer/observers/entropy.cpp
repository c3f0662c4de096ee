// SPDX-License-Identifier: Apache-2.0
// "quantizer.observer.entropy": the threshold whose quantized distribution loses least information
// (Migacz, GTC 2017, session 7310). For each number i of kept bins: P is the histogram of |x| with
// everything beyond in its last bin; Q is the histogram without that, merged into 2^(bits - 1)
// levels and spread evenly over the bins that are not empty; the smallest KL(P, Q) wins.
// A spike at zero, as behind a ReLU, is no part of that: spread over a level it would cost more
// than any tail, so the narrowest range would win. Its bin counts as its neighbour does, no range
// leaves out more than a thousandth of the other numbers, and where there was a spike the whole
// range is taken if its squared error is smaller: with most numbers at zero even this search cuts
// too much. Prefix sums make a candidate cost one step per level instead of one per bin, so all
// candidates are tried (an implementation whose bins are as many as its levels has only one).
#include "histogram_observer.hpp"

namespace tenon::quantizer {
namespace {

constexpr double kSmooth = 1e-4;  // share of the mass that all empty bins together get

class Divergence {
 public:
  Divergence(const std::vector<uint64_t>& bins, size_t levels) : levels_(levels) {
    mass_.push_back(0);
    filled_.push_back(0);
    self_.push_back(0);
    for (uint64_t count : bins) {
      double c = static_cast<double>(count);
      mass_.push_back(mass_.back() + c);
      filled_.push_back(filled_.back() + (count > 0));
      self_.push_back(self_.back() + (count > 0 ? c * std::log(c) : 0));
    }
  }

  // The share of the mass in the first `kept` bins.
  double share(size_t kept) const { return mass_.back() > 0 ? mass_[kept] / mass_.back() : 1; }
  // KL(P, Q) when `kept` bins are kept.
  double of(size_t kept) const {
    double total = mass_.back(), inside = mass_[kept];
    if (inside == 0) return std::numeric_limits<double>::infinity();
    double outside = total - inside;
    double last = mass_[kept] - mass_[kept - 1];
    double n = static_cast<double>(kept), q_filled = filled_[kept];
    bool fills_last = last == 0 && outside > 0;  // by the outliers alone, where Q is empty
    double p_filled = q_filled + fills_last;
    // Smoothing: the empty bins share kSmooth, the others keep the rest.
    double p_keep = p_filled < n ? 1 - kSmooth : 1, q_keep = q_filled < n ? 1 - kSmooth : 1;
    double p_empty = p_filled < n ? kSmooth / (n - p_filled) : 0;
    double q_empty = q_filled < n ? kSmooth / (n - q_filled) : 0;

    // Sum of p log p over bins that are filled, p = p_keep * count / total.
    double p_scale = p_keep / total;
    double own = self_[kept - 1] * p_scale + mass_[kept - 1] * p_scale * std::log(p_scale);
    double p_last = (last + outside) * p_scale;
    if (p_last > 0) own += p_last * std::log(p_last);
    double cross = 0;
    size_t width = kept / levels_;
    for (size_t level = 0; level < levels_; ++level) {
      size_t first = level * width, end = level + 1 == levels_ ? kept : first + width;
      double mass = mass_[end] - mass_[first], filled = filled_[end] - filled_[first];
      double p = mass * p_scale;
      if (end == kept && !fills_last) p += outside * p_scale;
      if (filled > 0) cross += p * std::log(q_keep * mass / inside / filled);
    }
    if (fills_last) cross += p_last * std::log(q_empty);
    double both_empty = n - p_filled;
    if (both_empty > 0) own += both_empty * p_empty * std::log(p_empty / q_empty);
    return own - cross;
  }

 private:
  size_t levels_;
  std::vector<double> mass_, filled_, self_;  // sums over the first k bins
};

class Entropy {
 public:
  static Result<Entropy> from(const Options&) { return Entropy(); }
  std::pair<double, double> ends(const Histogram& histogram, int bits, bool symmetric) const {
    const Extremes& all = histogram.all();
    std::vector<uint64_t> bins = histogram.magnitudes();
    bool spike = bins.size() > 1 && bins[0] > 2 * bins[1] && bins[0] > all.seen / 8;
    if (bins.size() > 1) bins[0] = std::min(bins[0], bins[1]);
    bool one_side = !symmetric && (all.low >= 0 || all.high <= 0);
    size_t best = search(bins, size_t{1} << (one_side ? bits : bits - 1));
    double most = all.magnitude(), end = static_cast<double>(best) * histogram.width();
    double steps = std::ldexp(1.0, bits) - (symmetric ? 2 : 1);
    auto error = [&](double limit) {
      double low = symmetric ? -limit : std::max(all.low, -limit);
      return histogram.rounding_error(low, symmetric ? limit : std::min(all.high, limit), steps);
    };
    if (spike && end < most && error(most) < error(end)) end = most;
    return {-end, end};
  }

 private:
  static constexpr double kKept = 0.999;  // of the numbers, at least

  // How many bins to keep.
  static size_t search(const std::vector<uint64_t>& bins, size_t levels) {
    size_t best = bins.size();
    if (bins.size() <= levels) return best;
    Divergence divergence(bins, levels);
    double least = std::numeric_limits<double>::infinity();
    for (size_t kept = levels; kept <= bins.size(); ++kept) {
      if (divergence.share(kept) < kKept) continue;
      double one = divergence.of(kept);
      if (one > least) continue;  // of equals the widest
      least = one;
      best = kept;
    }
    return best;
  }
};

}  // namespace
}  // namespace tenon::quantizer

TENON_OBSERVER(entropy,
               tenon::quantizer::HistogramObserver<tenon::quantizer::Entropy>,
               "quantizer.observer.entropy",
               "the range that loses least information (KL divergence)",
               R"({"properties": {)" TENON_OBSERVER_OPTIONS "}}")
