// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scores of classes with their labels, checked: what metrics of classes begin with.

#include <algorithm>
#include <optional>
#include <vector>

#include "tenon/sdk/number.hpp"

#include "pairing.hpp"

namespace tenon::metrics {

struct Scored {
  size_t classes;  // scores of a sample; 1: one score of yes
  size_t of_each;  // labels of a sample that are yes or no each, on the last axis; 1: there is one
  std::vector<double> scores;
  std::vector<int64_t> labels;
  const double* row(size_t i) const { return scores.data() + i * classes; }
};

inline Result<std::vector<int64_t>> labels_of(const DLTensor& truth) {
  if (!is_float(dtype_of(truth))) return numbers_as<int64_t>(truth);
  return invalid(cat("expected whole-number labels, got ", dtype_name(dtype_of(truth))));
}

inline Status does_not_fit(const DLTensor& scores, const DLTensor& labels) {
  return invalid(cat("output ", shape_text(shape_of(scores)), " does not fit labels ",
                     shape_text(shape_of(labels)), " (expected one row of scores per label)"));
}

// Where the classes are: on the axis that is left of the scores' shape without the labels', the
// last one if there are several; none: there is one score for each label, as a column or not.
inline std::optional<int64_t> class_axis(const DLTensor& scores, const DLTensor& labels) {
  std::span<const int64_t> have = shape_of(scores), wanted = shape_of(labels);
  if (have.size() == wanted.size() + 1)
    for (size_t axis = have.size(); axis-- > 1;)
      if (std::ranges::equal(have.first(axis), wanted.first(axis)) &&
          std::ranges::equal(have.subspan(axis + 1), wanted.subspan(axis)))
        return static_cast<int64_t>(axis);
  return std::nullopt;
}

// The same numbers with this axis as the last one.
inline std::vector<double> with_last(std::vector<double> numbers,
                                     std::span<const int64_t> shape,
                                     int64_t axis) {
  size_t inner = 1, n = static_cast<size_t>(shape[static_cast<size_t>(axis)]);
  for (int64_t size : shape.subspan(static_cast<size_t>(axis) + 1))
    inner *= static_cast<size_t>(size);
  if (inner == 1 || n == 0) return numbers;
  std::vector<double> out(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t outer = i / (n * inner), c = i / inner % n;
    out[(outer * inner + i % inner) * n + c] = numbers[i];
  }
  return out;
}

// One row of scores for each label. ignored: a label that stands for none. axis: of the classes;
// where it is not given, it follows from the shapes.
inline Result<Scored> scored(Tensors out,
                             Tensors label,
                             int64_t output,
                             const int64_t* ignored = nullptr,
                             std::optional<int64_t> axis = std::nullopt) {
  TN_TRY(given, output_at(out, output));
  TN_TRY(truth, label_at(label, 0));
  Scored of;
  TN_TRY(labels, labels_of(*truth));
  if (!is_float(dtype_of(*given)))
    return invalid(cat("expected float scores, got ", dtype_name(dtype_of(*given))));
  TN_TRY(numbers, numbers_as<double>(*given));
  of.labels = std::move(labels);
  const int64_t rank = given->ndim;
  if (axis && (*axis < -rank || *axis >= rank))
    return invalid(cat("option axis: expected an axis of output ", shape_text(shape_of(*given)),
                       ", got ", *axis));
  std::optional<int64_t> at =
      axis ? positive_axis(*axis, static_cast<size_t>(rank)) : class_axis(*given, *truth);
  const bool each = !at && are_alike(*given, *truth);
  if (!at && !each && rank > 0) at = rank - 1;
  of.classes = at ? static_cast<size_t>(given->shape[*at]) : 1;
  of.scores = at ? with_last(std::move(numbers), shape_of(*given), *at) : std::move(numbers);
  if (of.classes == 0 || of.scores.size() != of.labels.size() * of.classes)
    return does_not_fit(*given, *truth);
  of.of_each = each && rank > 1 ? static_cast<size_t>(given->shape[rank - 1]) : 1;
  auto last = std::max<int64_t>(static_cast<int64_t>(of.classes) - 1, 1);
  for (size_t i = 0; i < of.labels.size(); ++i)
    if ((of.labels[i] < 0 || of.labels[i] > last) && !(ignored && of.labels[i] == *ignored))
      return invalid(cat("label ", of.labels[i], " at place ", i, ": expected 0 to ", last,
                         of.labels[i] < 0 ? "; option ignore_index leaves labels out" : ""));
  return of;
}

}  // namespace tenon::metrics

// clang-format off
#define METRICS_AXIS_OPTION \
  R"("axis": {"type": "integer", "description": "axis of the classes in the output; by default what the labels' shape leaves, the last one if several fit"})"
// clang-format on
