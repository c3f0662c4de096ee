// SPDX-License-Identifier: Apache-2.0
// "metrics.mean_average_precision": of detected boxes, as COCO has it (Lin et al. 2014; the rules
// are those of pycocotools' COCOeval with one range of areas and no crowds): for each class and
// each threshold of overlap, detections of all images by falling score are right when they overlap
// a box of their class that no better one has taken; the precision at each recall is made monotone
// and read at 101 places, 0 where that recall is not reached. The mean over classes that have
// boxes, and over thresholds.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "tenon/sdk/number.hpp"

#include "pairing.hpp"

namespace tenon::metrics {
namespace {

struct Box {
  double x1, y1, x2, y2;
  double area() const { return std::max(x2 - x1, 0.0) * std::max(y2 - y1, 0.0); }
};

double overlap(const Box& a, const Box& b) {
  const Box common{std::max(a.x1, b.x1), std::max(a.y1, b.y1), std::min(a.x2, b.x2),
                   std::min(a.y2, b.y2)};
  const double both = common.area(), all = a.area() + b.area() - both;
  return all > 0 ? both / all : 0;
}

struct Detection {
  double score;
  Box box;
};
struct Found {  // one detection among those of all images
  double score;
  std::vector<bool> is_right;  // by threshold
};

// Which of an image's detections, best first, take one of its boxes: each the unclaimed one that it
// overlaps most.
void match(const std::vector<Detection>& detections,
           const std::vector<Box>& boxes,
           const std::vector<double>& thresholds,
           std::vector<Found>& out) {
  std::vector<std::vector<bool>> taken(thresholds.size(), std::vector<bool>(boxes.size()));
  for (const Detection& one : detections) {
    Found found{one.score, std::vector<bool>(thresholds.size())};
    std::vector<double> by_box;
    for (const Box& box : boxes)
      by_box.push_back(overlap(one.box, box));
    for (size_t t = 0; t < thresholds.size(); ++t) {
      double most = std::min(thresholds[t], 1 - 1e-10);
      size_t best = boxes.size();
      for (size_t i = 0; i < boxes.size(); ++i)
        if (!taken[t][i] && by_box[i] >= most) most = by_box[i], best = i;
      if (best == boxes.size()) continue;
      taken[t][best] = found.is_right[t] = true;
    }
    out.push_back(std::move(found));
  }
}

// The area under precision over recall at 0, 0.01 ... 1; detections by falling score.
double average_precision(const std::vector<Found>& found, size_t threshold, double n_boxes) {
  std::vector<double> precision, recall;
  double right = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    right += found[i].is_right[threshold];
    precision.push_back(right / static_cast<double>(i + 1));
    recall.push_back(right / n_boxes);
  }
  for (size_t i = precision.size(); i-- > 1;)
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double sum = 0;
  for (int place = 0; place <= 100; ++place) {
    auto at = std::lower_bound(recall.begin(), recall.end(), place * 0.01);  // as NumPy's linspace
    if (at != recall.end()) sum += precision[static_cast<size_t>(at - recall.begin())];
  }
  return sum / 101;
}

// Anything else pads: negative, NaN, beyond what doubles count.
bool is_class(double x) {
  return x >= 0 && x <= 0x1p53;
}

class MeanAveragePrecision {
 public:
  static constexpr bool kHigherIsBetter = true;
  static Result<MeanAveragePrecision> create(tn_ctx*, const Options& options) {
    MeanAveragePrecision out;
    out.places_ = {options.integer("boxes"), options.integer("scores"), options.integer("classes")};
    out.most_ = static_cast<size_t>(options.integer("max_detections"));
    const double from = options.number("from"), to = options.number("to");
    if (!(from <= to)) return invalid(cat("option from: expected at most ", to, ", got ", from));
    for (int i = 0; from + 0.05 * i <= to + 1e-9; ++i)
      out.thresholds_.push_back(std::round((from + 0.05 * i) * 1e6) / 1e6);  // 3/5 is 0.6
    return out;
  }

  Status update(Tensors out, Tensors label) {
    TN_TRY(boxes, numbers_of_output(out, 0, 3));
    TN_TRY(scores, numbers_of_output(out, 1, 2));
    TN_TRY(classes, numbers_of_output(out, 2, 2));
    TN_TRY(given, label_at(label, 0));
    TN_TRY(wanted, numbers_as<double>(*given));
    const std::span<const int64_t> dims = shape_of(*given);
    const std::vector<int64_t> shape(dims.begin(), dims.end());
    const int64_t n = boxes.shape[0], k = boxes.shape[1];
    if (boxes.shape[2] != 4 || scores.shape != std::vector{n, k} || classes.shape != scores.shape)
      return invalid(cat("expected boxes [n, k, 4], scores [n, k] and classes [n, k], got ",
                         shape_text(boxes.shape), ", ", shape_text(scores.shape), " and ",
                         shape_text(classes.shape)));
    if (shape.size() != 3 || shape[0] != n || shape[2] != 5)
      return invalid(cat("expected labels [", n, ", most boxes, 5] of class, x1, y1, x2, y2, with ",
                         "class -1 where there is none, got ", shape_text(shape)));
    for (int64_t i = 0; i < n; ++i)
      TN_CHECK(add_image(i, k, shape[1], boxes, scores, classes, wanted));
    return {};
  }

  Result<double> value() const {
    if (n_boxes_.empty())
      return Status(TN_FAILED_PRECONDITION, "expected labels with a box, got none");
    double sum = 0;
    for (size_t t = 0; t < thresholds_.size(); ++t)
      sum += at_threshold(t);
    return sum / static_cast<double>(thresholds_.size());
  }

  Status details(Sink& sink) const {
    nlohmann::ordered_json thresholds, classes;
    for (size_t t = 0; t < thresholds_.size(); ++t) {
      char text[16];
      std::snprintf(text, sizeof text, "%.2f", thresholds_[t]);
      thresholds[text] = at_threshold(t);
    }
    for (const auto& [c, n] : n_boxes_) {
      double sum = 0;
      for (size_t t = 0; t < thresholds_.size(); ++t)
        sum += of_class(c, t);
      classes[std::to_string(c)] = sum / static_cast<double>(thresholds_.size());
    }
    nlohmann::ordered_json out{{"images", n_images_}, {"thresholds", thresholds}};
    out["classes"] = classes;
    return sink.write(out.dump());
  }

 private:
  Result<Numbers> numbers_of_output(Tensors out, size_t which, size_t rank) const {
    TN_TRY(given, output_at(out, places_[which]));
    Numbers made;
    const std::span<const int64_t> shape = shape_of(*given);
    made.shape.assign(shape.begin(), shape.end());
    if (made.shape.size() != rank)
      return invalid(cat("output ", places_[which], ": expected rank ", rank, ", got ",
                         shape_text(made.shape)));
    TN_TRY(numbers, numbers_as<double>(*given));
    made.values = std::move(numbers);
    return made;
  }

  Status add_image(int64_t image,
                   int64_t k,
                   int64_t m,
                   const Numbers& boxes,
                   const Numbers& scores,
                   const Numbers& classes,
                   const std::vector<double>& labels) {
    std::map<int64_t, std::vector<Detection>> detections;
    std::map<int64_t, std::vector<Box>> wanted;
    for (int64_t j = image * m; j < (image + 1) * m; ++j) {
      const double* row = labels.data() + 5 * j;
      if (!is_class(row[0])) continue;
      wanted[static_cast<int64_t>(row[0])].push_back({row[1], row[2], row[3], row[4]});
    }
    for (int64_t j = image * k; j < (image + 1) * k; ++j) {
      auto at = static_cast<size_t>(j);
      if (std::isnan(scores.values[at]))
        return invalid(cat("image ", n_images_, ": a score is not a number"));
      if (!is_class(classes.values[at])) continue;
      const double* row = boxes.values.data() + 4 * j;
      detections[static_cast<int64_t>(classes.values[at])].push_back(
          {scores.values[at], {row[0], row[1], row[2], row[3]}});
    }
    for (auto& [c, some] : detections) {
      std::ranges::stable_sort(some, std::greater<>(), &Detection::score);
      if (some.size() > most_) some.resize(most_);
      match(some, wanted[c], thresholds_, found_[c]);
    }
    for (const auto& [c, some] : wanted)
      if (!some.empty()) n_boxes_[c] += static_cast<double>(some.size());
    ++n_images_;
    return {};
  }

  double of_class(int64_t c, size_t threshold) const {
    auto at = found_.find(c);
    if (at == found_.end()) return 0;
    std::vector<Found> sorted = at->second;
    std::ranges::stable_sort(sorted, std::greater<>(), &Found::score);
    return average_precision(sorted, threshold, n_boxes_.at(c));
  }
  double at_threshold(size_t t) const {
    double sum = 0;
    for (const auto& [c, n] : n_boxes_)
      sum += of_class(c, t);
    return n_boxes_.empty() ? 0 : sum / static_cast<double>(n_boxes_.size());
  }

  std::vector<int64_t> places_;
  size_t most_ = 100, n_images_ = 0;
  std::vector<double> thresholds_;
  std::map<int64_t, std::vector<Found>> found_;
  std::map<int64_t, double> n_boxes_;
};

}  // namespace
}  // namespace tenon::metrics

TENON_METRIC(mean_average_precision,
             tenon::metrics::MeanAveragePrecision,
             "metrics.mean_average_precision",
             "of detected boxes, as COCO has it",
             R"({
  "against": "labels",
  "properties": {
    "boxes": {"type": "integer", "minimum": 0, "default": 0, "description": "the output with boxes [n, k, 4]: x1, y1, x2, y2"},
    "scores": {"type": "integer", "minimum": 0, "default": 1, "description": "the output with their scores [n, k]"},
    "classes": {"type": "integer", "minimum": 0, "default": 2, "description": "the output with their classes [n, k]; below 0: none"},
    "from": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5, "description": "first threshold of overlap; the next ones are 0.05 higher each"},
    "to": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.95, "description": "last threshold of overlap"},
    "max_detections": {"type": "integer", "minimum": 1, "default": 100, "description": "detections of an image and class that count, the best ones"},
    "label": {"type": "string", "default": "label", "description": "the data set's field with boxes [most, 5]: class (-1: none), x1, y1, x2, y2"}}})")
