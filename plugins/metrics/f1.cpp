// SPDX-License-Identifier: Apache-2.0
// "metrics.f1": the harmonic mean of precision and recall, 2 tp/(2 tp + fp + fn), where the class
// with the highest score is predicted, or yes where one score is above the threshold. Labels of the
// scores' shape are yes or no for each class (multi-label). Of several classes:
//   macro     the mean over classes that occur, as label or as answer
//   weighted  the same, each by how many samples are of it
//   micro     of all counts together
//   positive  of class 1 alone
// A class that is never right counts 0, as in scikit-learn.
#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "classes.hpp"

namespace tenon::metrics {
namespace {

class F1 {
 public:
  static constexpr bool kHigherIsBetter = true;
  static Result<F1> create(tn_ctx*, const Options& options) {
    F1 out;
    out.average_ = options.text("average");
    out.threshold_ = options.number("threshold");
    if (options.has("axis")) out.axis_ = options.integer("axis");
    out.output_ = options.integer("output");
    return out;
  }

  Status update(Tensors out, Tensors label) {
    TN_TRY(of, scored(out, label, output_, nullptr, axis_));
    seen_ += of.labels.size() / of.of_each;
    if (of.of_each > 1) return update_each(of);
    counts_.resize(std::max({counts_.size(), of.classes, size_t{2}}));
    for (size_t i = 0; i < of.labels.size(); ++i) {
      const std::optional<size_t> predicted = best_of(of.row(i), of.classes);
      auto is = static_cast<size_t>(of.labels[i]);
      ++counts_[is].samples;
      if (predicted) ++counts_[*predicted].predicted;
      counts_[is].right += predicted == is;
    }
    return {};
  }

  Result<double> value() const {
    if (seen_ == 0) return Status(TN_FAILED_PRECONDITION, "no samples were seen");
    if (average_ == "positive") return counts_[1].score();
    Counts all;
    double sum = 0, weights = 0;
    for (const Counts& one : counts_) {
      all.right += one.right, all.samples += one.samples, all.predicted += one.predicted;
      const bool counts = has_several_ || one.samples + one.predicted > 0;
      double weight = average_ == "weighted" ? one.samples : counts;
      sum += weight * one.score();
      weights += weight;
    }
    if (average_ == "micro") return all.score();
    return weights > 0 ? sum / weights : 0;
  }

  Status details(Sink& sink) const {
    nlohmann::json classes = nlohmann::json::array();
    for (const Counts& one : counts_)
      classes.push_back(one.score());
    return sink.write(nlohmann::json{{"samples", seen_}, {"classes", classes}}.dump());
  }

 private:
  // The class of the best score; of one score whether it is a yes. None where no score is a number.
  std::optional<size_t> best_of(const double* row, size_t classes) const {
    std::optional<size_t> best;
    for (size_t c = 0; c < classes; ++c)
      if (!std::isnan(row[c]) && (!best || row[c] > row[*best])) best = c;
    return best && classes == 1 ? size_t{row[0] > threshold_} : best;
  }

  // Several labels of a sample: each is a class that it is of or not.
  Status update_each(const Scored& of) {
    if (average_ == "positive")
      return invalid(
          "option average: expected macro, micro or weighted for several labels of a "
          "sample, got positive");
    has_several_ = true;
    counts_.resize(of.of_each);
    for (size_t i = 0; i < of.labels.size(); ++i) {
      Counts& one = counts_[i % of.of_each];
      const bool says = of.scores[i] > threshold_, is = of.labels[i] == 1;
      one.samples += is;
      one.predicted += says;
      one.right += is && says;
    }
    return {};
  }

  struct Counts {
    double right = 0, samples = 0, predicted = 0;
    double score() const { return samples + predicted > 0 ? 2 * right / (samples + predicted) : 0; }
  };
  std::string average_;
  double threshold_ = 0.5;
  int64_t output_ = 0;
  std::optional<int64_t> axis_;
  std::vector<Counts> counts_;
  bool has_several_ = false;  // labels of a sample: each counts, also one that nothing is of
  uint64_t seen_ = 0;
};

}  // namespace
}  // namespace tenon::metrics

TENON_METRIC(f1,
             tenon::metrics::F1,
             "metrics.f1",
             "harmonic mean of precision and recall",
             R"({
  "against": "labels",
  "properties": {
    "average": {"type": "string", "enum": ["macro", "micro", "weighted", "positive"], "default": "macro", "description": "average over classes: unweighted, over all counts together, weighted by samples, or class 1 alone"},
    "threshold": {"type": "number", "default": 0.5, "description": "decision threshold of a model with one score, or with labels of its scores' shape; 0 for logits"},
    )" METRICS_AXIS_OPTION R"(,
    "output": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the model"},
    "label": {"type": "string", "default": "label", "description": "field of the data set with the class numbers"}}})")
