// SPDX-License-Identifier: Apache-2.0
// "metrics.accuracy": the share of samples whose label is among the k highest scores. Among equal
// scores the lower class comes first, so that a tie does not depend on the order of a sort.
#include <cmath>

#include <nlohmann/json.hpp>

#include "tenon/sdk/number.hpp"

#include "pairing.hpp"

namespace tenon::metrics {
namespace {

class Accuracy {
 public:
  static constexpr bool kHigherIsBetter = true;
  static Result<Accuracy> create(tn_ctx*, const Options& options) {
    Accuracy out;
    out.top_k_ = options.integer("top_k", 1);
    out.output_ = options.integer("output");
    return out;
  }

  Status update(Tensors out, Tensors label) {
    TN_TRY(scores, output_at(out, output_));
    TN_TRY(truth, label_at(label, 0));
    if (is_float(dtype_of(*truth)))
      return invalid(cat("expected whole-number labels, got ", dtype_name(dtype_of(*truth))));
    TN_TRY(labels, numbers_as<int64_t>(*truth));
    bool decided = !is_float(dtype_of(*scores));  // the model ends in ArgMax
    TN_TRY(numbers, numbers_as<double>(*scores));
    size_t classes = 1;
    if (!decided && scores->ndim > 0)
      classes = static_cast<size_t>(scores->shape[scores->ndim - 1]);
    if (classes == 0 || numbers.size() != labels.size() * classes)
      return invalid(cat("output ", shape_text(shape_of(*scores)), " does not fit labels ",
                         shape_text(shape_of(*truth)), " (expected one row of scores per label)"));
    for (size_t i = 0; i < labels.size(); ++i) {
      if (!decided && (labels[i] < 0 || static_cast<size_t>(labels[i]) >= classes))
        return invalid(
            cat("label ", labels[i], " of sample ", seen_, ": expected 0 to ", classes - 1));
      bool right = decided ? static_cast<int64_t>(numbers[i]) == labels[i]
                           : in_top(&numbers[i * classes], classes, static_cast<size_t>(labels[i]));
      ++seen_;
      right_ += right;
    }
    return {};
  }
  Result<double> value() const {
    if (seen_ == 0) return Status(TN_FAILED_PRECONDITION, "no samples were seen");
    return static_cast<double>(right_) / static_cast<double>(seen_);
  }
  Status details(Sink& sink) const {
    return sink.write(
        nlohmann::json{{"samples", seen_}, {"right", right_}, {"top_k", top_k_}}.dump());
  }

 private:
  bool in_top(const double* scores, size_t classes, size_t label) const {
    if (std::isnan(scores[label])) return false;
    int64_t before = 0;
    for (size_t c = 0; c < classes; ++c)
      before += scores[c] > scores[label] || (scores[c] == scores[label] && c < label);
    return before < top_k_;
  }
  int64_t top_k_ = 1, output_ = 0;
  uint64_t seen_ = 0, right_ = 0;
};

}  // namespace
}  // namespace tenon::metrics

TENON_METRIC(accuracy,
             tenon::metrics::Accuracy,
             "metrics.accuracy",
             "share of samples with the label among the k highest scores",
             R"({
  "against": "labels",
  "properties": {
    "top_k": {"type": "integer", "minimum": 1, "default": 1, "description": "k of top-k"},
    "output": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the model"},
    "label": {"type": "string", "default": "label", "description": "field of the data set with the class numbers"}}})")
