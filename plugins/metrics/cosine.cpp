// SPDX-License-Identifier: Apache-2.0
// "metrics.cosine": cosine of the angle between each sample's output and the reference model's.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "pairing.hpp"

namespace tenon::metrics {
namespace {

double cosine_of(const double* a, const double* b, size_t n) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < n; ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  if (aa == 0 && bb == 0) return 1;  // two zero vectors are the same
  if (aa == 0 || bb == 0) return 0;
  return ab / (std::sqrt(aa) * std::sqrt(bb));
}

class Cosine {
 public:
  static constexpr bool kHigherIsBetter = true;
  static Result<Cosine> create(tn_ctx*, const Options& options) {
    Cosine out;
    out.output_ = options.integer("output", -1);
    return out;
  }
  Status update(Tensors out, Tensors label) {
    TN_TRY(outputs, chosen(output_, out, label));
    for (int64_t i : outputs) {
      TN_TRY(got, output_at(out, i));
      TN_TRY(want, label_at(label, i));
      TN_TRY(pair, same_shape(*got, *want));
      size_t samples = static_cast<size_t>(pair.samples());
      if (samples == 0) continue;
      size_t width = pair.got.values.size() / samples;
      for (size_t s = 0; s < samples; ++s) {
        double one = cosine_of(&pair.got.values[s * width], &pair.want.values[s * width], width);
        if (!std::isfinite(one)) one = 0;  // NaN or infinity in an output is as wrong as can be
        sum_ += one;
        min_ = std::min(min_, one);
        ++seen_;
      }
    }
    return {};
  }
  Result<double> value() const {
    if (seen_ == 0) return Status(TN_FAILED_PRECONDITION, "no samples were seen");
    return sum_ / static_cast<double>(seen_);
  }
  Status details(Sink& sink) const {
    nlohmann::json out{{"vectors", seen_}};
    if (seen_ > 0) out.update({{"mean", sum_ / static_cast<double>(seen_)}, {"min", min_}});
    return sink.write(out.dump());
  }

 private:
  int64_t output_ = -1;
  double sum_ = 0, min_ = 1;
  uint64_t seen_ = 0;
};

}  // namespace
}  // namespace tenon::metrics

TENON_METRIC(cosine,
             tenon::metrics::Cosine,
             "metrics.cosine",
             "mean and lowest cosine of the outputs against a reference model's",
             R"({
  "against": "outputs",
  "properties": {
    "output": {"type": "integer", "minimum": -1, "default": -1,
               "description": "which output of the model; -1: all"}}})")
