// SPDX-License-Identifier: Apache-2.0
// "metrics.perplexity": exp of the mean negative logarithm of the label's probability, over all
// labels that count and not over batches of them.
#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "classes.hpp"
#include "finite.hpp"

namespace tenon::metrics {
namespace {

class Perplexity {
 public:
  static constexpr bool kHigherIsBetter = false;
  static Result<Perplexity> create(tn_ctx*, const Options& options) {
    Perplexity out;
    out.scores_ = options.text("scores");
    if (options.has("ignore_index")) out.ignored_ = options.integer("ignore_index");
    out.output_ = options.integer("output");
    return out;
  }

  Status update(Tensors out, Tensors label) {
    TN_TRY(of, scored(out, label, output_, ignored_ ? &*ignored_ : nullptr));
    if (of.classes < 2) return invalid("output: expected scores of at least 2 classes, got 1");
    for (size_t i = 0; i < of.labels.size(); ++i) {
      if (ignored_ && of.labels[i] == *ignored_) continue;
      sum_ -= log_probability(of.row(i), of.classes, static_cast<size_t>(of.labels[i]));
      ++seen_;
    }
    return {};
  }

  Result<double> value() const {
    if (seen_ == 0) return Status(TN_FAILED_PRECONDITION, "no labels that count were seen");
    return std::exp(sum_ / static_cast<double>(seen_));
  }

  Status details(Sink& sink) const {
    return sink.write(
        nlohmann::json{{"labels", seen_}, {"negative_log_likelihood", finite(sum_)}}.dump());
  }

 private:
  double log_probability(const double* row, size_t classes, size_t label) const {
    if (scores_ == "probabilities") return std::log(row[label]);
    if (scores_ == "log_probabilities") return row[label];
    double high = *std::max_element(row, row + classes), sum = 0;
    for (size_t c = 0; c < classes; ++c)
      sum += std::exp(row[c] - high);
    return row[label] - high - std::log(sum);
  }

  std::string scores_;
  std::optional<int64_t> ignored_;
  int64_t output_ = 0;
  double sum_ = 0;
  uint64_t seen_ = 0;
};

}  // namespace
}  // namespace tenon::metrics

TENON_METRIC(perplexity,
             tenon::metrics::Perplexity,
             "metrics.perplexity",
             "how many classes the model is as unsure about",
             R"({
  "against": "labels",
  "properties": {
    "scores": {"type": "string", "enum": ["logits", "probabilities", "log_probabilities"], "default": "logits", "description": "what the output holds, classes on the last axis"},
    "ignore_index": {"type": "integer", "description": "ignore index: labels that do not count, as padding"},
    "output": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the model"},
    "label": {"type": "string", "default": "label", "description": "field of the data set with the class numbers"}}})")
