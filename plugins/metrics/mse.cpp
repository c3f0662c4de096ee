// SPDX-License-Identifier: Apache-2.0
// "metrics.mse": mean squared difference between an output and the data set's numbers.
#include <nlohmann/json.hpp>

#include "finite.hpp"
#include "pairing.hpp"

namespace tenon::metrics {
namespace {

class Mse {
 public:
  static constexpr bool kHigherIsBetter = false;
  static Result<Mse> create(tn_ctx*, const Options& options) {
    Mse out;
    out.output_ = options.integer("output");
    return out;
  }
  Status update(Tensors out, Tensors label) {
    TN_TRY(got, output_at(out, output_));
    TN_TRY(want, label_at(label, 0));
    TN_TRY(pair, alike(*got, *want));
    for (size_t i = 0; i < pair.got.values.size(); ++i) {
      double difference = pair.got.values[i] - pair.want.values[i];
      sum_ += difference * difference;
    }
    seen_ += pair.got.values.size();
    return {};
  }
  Result<double> value() const {
    if (seen_ == 0) return Status(TN_FAILED_PRECONDITION, "no samples were seen");
    return sum_ / static_cast<double>(seen_);
  }
  Status details(Sink& sink) const {
    return sink.write(nlohmann::json{{"numbers", seen_}, {"sum", finite(sum_)}}.dump());
  }

 private:
  int64_t output_ = 0;
  double sum_ = 0;
  uint64_t seen_ = 0;
};

}  // namespace
}  // namespace tenon::metrics

TENON_METRIC(mse,
             tenon::metrics::Mse,
             "metrics.mse",
             "mean squared error against numbers of the data set",
             R"({
  "against": "labels",
  "properties": {
    "output": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the model"},
    "label": {"type": "string", "default": "label", "description": "field of the data set with the target values"}}})")
