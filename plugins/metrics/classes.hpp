// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scores of classes with their labels, checked: what metrics of classes begin with.

#include <vector>

#include "tenon/sdk/number.hpp"

#include "pairing.hpp"

namespace tenon::metrics {

struct Scored {
  size_t classes;  // scores of a sample; 1: one score of yes
  std::vector<double> scores;
  std::vector<int64_t> labels;
  const double* row(size_t i) const { return scores.data() + i * classes; }
};

// One row of scores for each label, classes on the last axis. ignored: a label that stands for
// none.
inline Result<Scored> scored(Tensors out,
                             Tensors label,
                             int64_t output,
                             const int64_t* ignored = nullptr) {
  TN_TRY(given, output_at(out, output));
  TN_TRY(truth, label_at(label, 0));
  if (is_float(dtype_of(*truth)))
    return invalid(cat("expected whole-number labels, got ", dtype_name(dtype_of(*truth))));
  if (!is_float(dtype_of(*given)))
    return invalid(cat("expected float scores, got ", dtype_name(dtype_of(*given))));
  Scored of;
  TN_TRY(labels, numbers_as<int64_t>(*truth));
  TN_TRY(numbers, numbers_as<double>(*given));
  of.labels = std::move(labels);
  of.scores = std::move(numbers);
  bool is_row = given->ndim > truth->ndim || (given->ndim > 1 && given->ndim == truth->ndim);
  of.classes = is_row ? static_cast<size_t>(given->shape[given->ndim - 1]) : 1;
  if (of.classes == 0 || of.scores.size() != of.labels.size() * of.classes)
    return invalid(cat("output ", shape_text(shape_of(*given)), " does not fit labels ",
                       shape_text(shape_of(*truth)), " (expected one row of scores per label)"));
  auto last = std::max<int64_t>(static_cast<int64_t>(of.classes) - 1, 1);
  for (size_t i = 0; i < of.labels.size(); ++i)
    if ((of.labels[i] < 0 || of.labels[i] > last) && !(ignored && of.labels[i] == *ignored))
      return invalid(cat("label ", of.labels[i], " at place ", i, ": expected 0 to ", last));
  return of;
}

}  // namespace tenon::metrics
