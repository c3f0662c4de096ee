// SPDX-License-Identifier: Apache-2.0
// "metrics.accuracy": the share of samples whose label is among the k highest scores. Among equal
// scores the lower class comes first, so that a tie does not depend on the order of a sort. Where
// there is one score for each label, 1 or 0, it says 1 above the threshold.
#include <cmath>

#include <nlohmann/json.hpp>

#include "classes.hpp"

namespace tenon::metrics {
namespace {

class Accuracy {
 public:
  static constexpr bool kHigherIsBetter = true;
  static Result<Accuracy> create(tn_ctx*, const Options& options) {
    Accuracy out;
    out.top_k_ = options.integer("top_k", 1);
    out.threshold_ = options.number("threshold");
    if (options.has("ignore_index")) out.ignored_ = options.integer("ignore_index");
    if (options.has("axis")) out.axis_ = options.integer("axis");
    out.output_ = options.integer("output");
    return out;
  }

  Status update(Tensors out, Tensors label) {
    TN_TRY(scores, output_at(out, output_));
    if (!is_float(dtype_of(*scores))) return update_decided(*scores, label);
    TN_TRY(of, scored(out, label, output_, ignored_ ? &*ignored_ : nullptr, axis_));
    for (size_t i = 0; i < of.labels.size(); ++i) {
      if (ignored_ && of.labels[i] == *ignored_) continue;
      auto is = static_cast<size_t>(of.labels[i]);
      count(of.classes == 1 ? is_yes(of.row(i)[0], is == 1) : in_top(of.row(i), of.classes, is));
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
  // The model ends in ArgMax.
  Status update_decided(const DLTensor& answers, Tensors label) {
    if (top_k_ > 1)
      return invalid(cat("option top_k: expected float scores to find ", top_k_,
                         " classes in, got answers of ", dtype_name(dtype_of(answers))));
    TN_TRY(truth, label_at(label, 0));
    TN_TRY(labels, labels_of(*truth));
    TN_TRY(numbers, numbers_as<int64_t>(answers));
    if (numbers.size() != labels.size()) return does_not_fit(answers, *truth);
    for (size_t i = 0; i < labels.size(); ++i)
      if (!ignored_ || labels[i] != *ignored_) count(numbers[i] == labels[i]);
    return {};
  }
  void count(bool right) {
    ++seen_;
    right_ += right;
  }
  bool is_yes(double score, bool yes) const {
    return !std::isnan(score) && (score > threshold_) == yes;
  }
  bool in_top(const double* scores, size_t classes, size_t label) const {
    if (std::isnan(scores[label])) return false;
    int64_t before = 0;
    for (size_t c = 0; c < classes; ++c)
      before += scores[c] > scores[label] || (scores[c] == scores[label] && c < label);
    return before < top_k_;
  }
  int64_t top_k_ = 1, output_ = 0;
  double threshold_ = 0.5;
  std::optional<int64_t> ignored_, axis_;
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
    "threshold": {"type": "number", "default": 0.5, "description": "decision threshold where there is one score for each label; 0 for logits"},
    "ignore_index": {"type": "integer", "description": "ignore index: labels that do not count, as padding"},
    )" METRICS_AXIS_OPTION R"(,
    "output": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the model"},
    "label": {"type": "string", "default": "label", "description": "field of the data set with the class numbers"}}})")
