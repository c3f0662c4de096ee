// SPDX-License-Identifier: Apache-2.0
// "metrics.snr": signal to noise in decibels, 10 log10(sum of reference^2 / sum of difference^2).
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tenon/sdk/decibels.hpp"

#include "pairing.hpp"

namespace tenon::metrics {
namespace {

class Snr {
 public:
  static constexpr bool kHigherIsBetter = true;
  static Result<Snr> create(tn_ctx*, const Options& options) {
    Snr out;
    out.output_ = options.integer("output", -1);
    return out;
  }
  Status update(Tensors out, Tensors label) {
    TN_TRY(outputs, chosen(output_, out, label));
    for (int64_t o : outputs) {
      TN_TRY(got, output_at(out, o));
      TN_TRY(want, label_at(label, o));
      TN_TRY(pair, same_shape(*got, *want));
      for (size_t i = 0; i < pair.got.values.size(); ++i) {
        double difference = pair.got.values[i] - pair.want.values[i];
        signal_ += pair.want.values[i] * pair.want.values[i];
        noise_ += difference * difference;
        worst_ = std::max(worst_, std::abs(difference));
      }
      seen_ += static_cast<uint64_t>(pair.samples());
    }
    return {};
  }
  Result<double> value() const {
    if (seen_ == 0) return Status(TN_FAILED_PRECONDITION, "no samples were seen");
    return decibels(signal_, noise_);
  }
  Status details(Sink& sink) const {
    return sink.write(nlohmann::json{
        {"samples", seen_}, {"signal", signal_}, {"noise", noise_}, {"max_error", worst_}}
                          .dump());
  }

 private:
  int64_t output_ = -1;
  double signal_ = 0, noise_ = 0, worst_ = 0;
  uint64_t seen_ = 0;
};

}  // namespace
}  // namespace tenon::metrics

TENON_METRIC(snr,
             tenon::metrics::Snr,
             "metrics.snr",
             "signal to noise in dB against a reference model's outputs; 200 when equal",
             R"({
  "against": "outputs",
  "properties": {
    "output": {"type": "integer", "minimum": -1, "default": -1,
               "description": "which output of the model; -1: all"}}})")
