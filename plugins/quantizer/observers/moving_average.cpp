// SPDX-License-Identifier: Apache-2.0
// "quantizer.observer.moving_average": the ends of each tensor, averaged over time with momentum
// (Jacob et al., CVPR 2018, section 3.1). It depends on the order of tensors by its nature; merging
// weighs each side by the number of tensors that it saw.
#include "extremes.hpp"

namespace tenon::quantizer {
namespace {

class MovingAverage {
 public:
  static Result<MovingAverage> create(tn_ctx*, const Options& options) {
    MovingAverage out;
    out.symmetric_ = options.flag("symmetric");
    out.momentum_ = options.number("momentum", 0.9);
    return out;
  }
  Status observe(const DLTensor& tensor) {
    Extremes one;
    TN_CHECK(with_floats(tensor, [&](const auto* data, size_t n) { one.add(data, n); }));
    all_.add(one);
    if (one.seen == 0) return {};
    double keep = tensors_ == 0 ? 0 : momentum_;
    low_ = keep * low_ + (1 - keep) * one.low;
    high_ = keep * high_ + (1 - keep) * one.high;
    ++tensors_;
    return {};
  }
  Status save(Sink& sink) const {
    nlohmann::json out = to_json(all_);
    out.update({{"kind", "moving_average"},
                {"tensors", tensors_},
                {"momentum", momentum_},
                {"average_low", low_},
                {"average_high", high_}});
    return sink.write(out.dump());
  }
  Status merge(std::string_view saved) {
    TN_TRY(parsed, parse_saved(saved, "moving_average"));
    TN_TRY(other, extremes_in(parsed));
    for (const char* key : {"tensors", "average_low", "average_high"})
      if (!parsed.contains(key) || !parsed[key].is_number())
        return invalid("the saved state of an observer is broken");
    if (parsed.value("momentum", momentum_) != momentum_)
      return invalid("momentum: expected that of the observer which saved the state");
    if (!parsed["tensors"].is_number_unsigned()) return invalid("tensors: expected a count");
    uint64_t theirs = parsed["tensors"];
    all_.add(other);
    if (theirs == 0) return {};
    double share = static_cast<double>(theirs) / static_cast<double>(theirs + tensors_);
    low_ += share * (parsed["average_low"].get<double>() - low_);
    high_ += share * (parsed["average_high"].get<double>() - high_);
    tensors_ += theirs;
    return {};
  }
  Result<tn_range> range() const { return make_range(all_, low_, high_, symmetric_); }

 private:
  bool symmetric_ = false;
  double momentum_ = 0.9, low_ = 0, high_ = 0;
  uint64_t tensors_ = 0;
  Extremes all_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_OBSERVER(moving_average,
               tenon::quantizer::MovingAverage,
               "quantizer.observer.moving_average",
               "ends of each tensor, averaged over time",
               R"({"properties": {
    "momentum": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.9,
                 "description": "decay rate of the average"},
    )" TENON_OBSERVER_OPTIONS "}}")
