// SPDX-License-Identifier: Apache-2.0
// "metrics.auc": the area under the curve of true over false positives: how often a sample of the
// class has a higher score than one of another (Mann & Whitney 1947), (ranks of positives - P(P +
// 1)/2)/(P N), equal scores sharing their mean rank. One score of yes, or two classes, whose
// scores' difference it is; of more classes the mean of each against the rest. Scores of all
// samples are kept until the value is asked for.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "classes.hpp"

namespace tenon::metrics {
namespace {

// The area, or nothing where all samples are of one side.
std::optional<double> area(const std::vector<double>& scores, const std::vector<bool>& positive) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double ranks = 0, positives = 0;
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    for (end = begin; end < order.size() && scores[order[end]] == scores[order[begin]]; ++end) {
    }
    double rank = static_cast<double>(begin + end + 1) / 2;  // from 1 on
    for (size_t i = begin; i < end; ++i)
      if (positive[order[i]]) ranks += rank, ++positives;
  }
  double others = static_cast<double>(scores.size()) - positives;
  if (positives == 0 || others == 0) return std::nullopt;
  return (ranks - positives * (positives + 1) / 2) / (positives * others);
}

class Auc {
 public:
  static constexpr bool kHigherIsBetter = true;
  static Result<Auc> create(tn_ctx*, const Options& options) {
    Auc out;
    out.output_ = options.integer("output");
    return out;
  }

  Status update(Tensors out, Tensors label) {
    TN_TRY(of, scored(out, label, output_));
    if (of.of_each > 1)
      return invalid(
          cat("expected one label for a sample, got ", of.of_each, "; f1 takes several"));
    if (!columns_.empty() && of.classes != classes_)
      return invalid(cat("output: expected ", classes_, " scores as before, got ", of.classes));
    classes_ = of.classes;
    columns_.resize(classes_ > 2 ? classes_ : 1);
    for (size_t i = 0; i < of.labels.size(); ++i) {
      const double* row = of.row(i);
      for (size_t c = 0; c < columns_.size(); ++c) {
        const double score = classes_ == 2 ? row[1] - row[0] : row[c];
        if (std::isnan(score)) return invalid(no_number(row));
        columns_[c].push_back(score);
      }
      labels_.push_back(of.labels[i]);
    }
    return {};
  }

  Result<double> value() const {
    if (labels_.empty()) return Status(TN_FAILED_PRECONDITION, "no samples were seen");
    double sum = 0, n = 0;
    for (size_t c = 0; c < columns_.size(); ++c)
      if (std::optional<double> one = of_class(c)) sum += *one, ++n;
    if (n == 0)
      return Status(TN_FAILED_PRECONDITION,
                    "expected samples of at least two classes, all that were seen are of one");
    return sum / n;
  }

  Status details(Sink& sink) const {
    nlohmann::json classes = nlohmann::json::array();
    for (size_t c = 0; c < columns_.size(); ++c) {
      std::optional<double> one = of_class(c);
      classes.push_back(one ? nlohmann::json(*one) : nlohmann::json());
    }
    return sink.write(nlohmann::json{{"samples", labels_.size()}, {"classes", classes}}.dump());
  }

 private:
  // Of the sample that comes next: numbers that are no NaN have no order with one.
  std::string no_number(const double* row) const {
    const bool has_nan = std::any_of(row, row + classes_, [](double x) { return std::isnan(x); });
    return cat("sample ", labels_.size(),
               has_nan ? ": a score is not a number" : ": both scores are the same infinity");
  }
  std::optional<double> of_class(size_t c) const {
    auto wanted = static_cast<int64_t>(columns_.size() == 1 ? 1 : c);
    std::vector<bool> positive(labels_.size());
    for (size_t i = 0; i < labels_.size(); ++i)
      positive[i] = labels_[i] == wanted;
    return area(columns_[c], positive);
  }

  int64_t output_ = 0;
  size_t classes_ = 0;
  std::vector<std::vector<double>> columns_;
  std::vector<int64_t> labels_;
};

}  // namespace
}  // namespace tenon::metrics

TENON_METRIC(auc,
             tenon::metrics::Auc,
             "metrics.auc",
             "how often the right sample has the higher score",
             R"({
  "against": "labels",
  "properties": {
    "output": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the model"},
    "label": {"type": "string", "default": "label", "description": "field of the data set with the class numbers"}}})")
