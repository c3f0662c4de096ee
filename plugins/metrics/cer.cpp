// SPDX-License-Identifier: Apache-2.0
// "metrics.cer": character error rate of a text recogniser with CTC output (Graves et al., ICML
// 2006): the best class of each step, repeats merged, blanks dropped; edit distance to the label
// divided by the labels' total length.
#include <algorithm>
#include <fstream>
#include <numeric>

#include <nlohmann/json.hpp>

#include "tenon/sdk/number.hpp"

#include "pairing.hpp"

namespace tenon::metrics {
namespace {

using Classes = std::vector<int64_t>;

uint64_t edit_distance(const Classes& a, const Classes& b) {
  std::vector<uint64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), uint64_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    uint64_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      uint64_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

Result<std::vector<std::string>> read_dictionary(const std::string& path) {
  std::vector<std::string> out;
  if (path.empty()) return out;
  std::ifstream file(path);
  if (!file)
    return Status(TN_NOT_FOUND, cat("option dictionary: cannot read ", path,
                                    " (expected a text file with one character per line)"));
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    out.push_back(line);
  }
  if (out.empty()) return invalid(cat("option dictionary: ", path, ": empty"));
  return out;
}

class Cer {
 public:
  static constexpr bool kHigherIsBetter = false;
  static constexpr size_t kExamples = 10;

  static Result<Cer> create(tn_ctx*, const Options& options) {
    Cer out;
    TN_TRY(dictionary, read_dictionary(options.text("dictionary")));
    out.dictionary_ = std::move(dictionary);
    out.output_ = options.integer("output");
    out.blank_ = options.integer("blank");
    out.steps_first_ = options.text("layout") == "tnc";
    return out;
  }

  Status update(Tensors out, Tensors label) {
    TN_TRY(scores, output_at(out, output_));
    TN_TRY(truth, label_at(label, 0));
    if (scores->ndim != 3 || !is_float(dtype_of(*scores)))
      return invalid(cat("expected float scores of rank 3 (samples, steps, classes), got ",
                         dtype_name(dtype_of(*scores)), " ", shape_text(shape_of(*scores))));
    int64_t n = scores->shape[steps_first_ ? 1 : 0], steps = scores->shape[steps_first_ ? 0 : 1];
    int64_t classes = scores->shape[2];
    const int64_t batch = n;
    if (steps_first_ && truth->ndim == 2 && truth->shape[0] < batch) {
      // The last samples fill a batch up that the model fixes. Where steps come first and are as
      // many as the batch, as many of them were taken off instead.
      n = truth->shape[0];
      if (steps == n)
        return invalid(cat("layout tnc: scores ", shape_text(shape_of(*scores)), " of ", n,
                           " samples may lack steps: expected a number of samples that the "
                           "model's batch divides"));
    }
    if (truth->ndim != 2 || truth->shape[0] != n || is_float(dtype_of(*truth)))
      return invalid(cat("expected whole-number labels [", n, ", longest], padded with -1, got ",
                         dtype_name(dtype_of(*truth)), " ", shape_text(shape_of(*truth))));
    if (blank_ >= classes)
      return invalid(cat("option blank: expected a class below ", classes, ", got ", blank_));
    TN_CHECK(check_dictionary(classes));
    TN_TRY(numbers, numbers_as<float>(*scores));
    TN_TRY(labels, numbers_as<int64_t>(*truth));
    int64_t longest = truth->shape[1];
    for (int64_t i = 0; i < n; ++i) {
      Classes want;
      for (int64_t j = 0; j < longest && labels[static_cast<size_t>(i * longest + j)] != -1; ++j)
        want.push_back(labels[static_cast<size_t>(i * longest + j)]);
      for (int64_t c : want)
        if (c < 0 || c >= classes || c == blank_)
          return invalid(cat("label ", c, " of sample ", seen_, ": expected a class below ",
                             classes, " that is not the blank (", blank_, ")"));
      count(want, decode(numbers, i, batch, steps, classes));
    }
    return {};
  }
  Result<double> value() const {
    if (length_ == 0) return Status(TN_FAILED_PRECONDITION, "no labelled characters were seen");
    return static_cast<double>(errors_) / static_cast<double>(length_);
  }
  Status details(Sink& sink) const {
    nlohmann::json out{{"samples", seen_},
                       {"characters", length_},
                       {"errors", errors_},
                       {"lines_right", right_},
                       {"examples", examples_}};
    return sink.write(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

 private:
  // Class 0 is the blank, class i line i; some models end with one more class for the space.
  Status check_dictionary(int64_t classes) const {
    int64_t lines = static_cast<int64_t>(dictionary_.size());
    if (lines == 0 || classes == lines + 1 || classes == lines + 2) return {};
    return invalid(cat("option dictionary: it has ", lines, " lines, the model has ", classes,
                       " classes (expected ", lines + 1, " or ", lines + 2, ")"));
  }

  Classes decode(const std::vector<float>& scores,
                 int64_t i,
                 int64_t batch,
                 int64_t steps,
                 int64_t classes) const {
    Classes out;
    int64_t last = blank_;
    for (int64_t t = 0; t < steps; ++t) {
      int64_t row = steps_first_ ? t * batch + i : i * steps + t;
      auto first = scores.begin() + row * classes;
      int64_t best = std::max_element(first, first + classes) - first;
      if (best != last && best != blank_) out.push_back(best);
      last = best;
    }
    return out;
  }

  void count(const Classes& want, const Classes& got) {
    uint64_t errors = edit_distance(want, got);
    ++seen_;
    right_ += errors == 0;
    errors_ += errors;
    length_ += want.size();
    if (errors > 0 && examples_.size() < kExamples && !dictionary_.empty())
      examples_.push_back({{"sample", seen_ - 1}, {"expected", text(want)}, {"got", text(got)}});
  }
  std::string text(const Classes& classes) const {
    std::string out;
    for (int64_t c : classes) {
      size_t line = static_cast<size_t>(c - (c > blank_ ? 1 : 0));
      out += line < dictionary_.size() ? dictionary_[line] : " ";
    }
    return out;
  }

  std::vector<std::string> dictionary_;
  int64_t output_ = 0, blank_ = 0;
  bool steps_first_ = false;
  uint64_t seen_ = 0, right_ = 0, errors_ = 0, length_ = 0;
  nlohmann::json examples_ = nlohmann::json::array();
};

}  // namespace
}  // namespace tenon::metrics

TENON_METRIC(cer,
             tenon::metrics::Cer,
             "metrics.cer",
             "character error rate of greedily decoded CTC output",
             R"({
  "against": "labels",
  "properties": {
    "output": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the model"},
    "label": {"type": "string", "default": "label", "description": "field with class numbers, padded with -1"},
    "blank": {"type": "integer", "minimum": 0, "default": 0, "description": "class of the blank"},
    "layout": {"type": "string", "enum": ["ntc", "tnc"], "default": "ntc",
               "description": "axes of the scores: n samples, t steps, c classes"},
    "dictionary": {"type": "path", "default": "",
                   "description": "one character per line, for examples of wrong lines in the details"}}})")
