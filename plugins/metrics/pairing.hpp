// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a metric is given, checked: one output of the model and what it should be, as numbers.

#include <span>
#include <vector>

#include "tenon/sdk/role/metric.hpp"

namespace tenon::metrics {

using Tensors = std::span<const DLTensor* const>;

struct Numbers {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

// "[8, 10]"
std::string shape_text(std::span<const int64_t> shape);

// Output i, and label i when the reference gives several outputs, else label 0.
Result<const DLTensor*> output_at(Tensors out, int64_t i);
Result<const DLTensor*> label_at(Tensors label, int64_t i);

// Two tensors of as many numbers, in double precision.
struct Pair {
  Numbers got, want;
  int64_t samples() const { return got.shape.empty() ? 1 : got.shape[0]; }
};
Result<Pair> same_shape(const DLTensor& got, const DLTensor& want);
// The same shape, but for a last axis of one: a table gives [n] where a model gives [n, 1].
bool are_alike(const DLTensor& got, const DLTensor& want);
Result<Pair> alike(const DLTensor& got, const DLTensor& want);

// Outputs to compare: the one that option "output" names, or all for -1.
Result<std::vector<int64_t>> chosen(int64_t option, Tensors out, Tensors label);

}  // namespace tenon::metrics
