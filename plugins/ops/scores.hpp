// SPDX-License-Identifier: Apache-2.0
#pragma once
// What classifiers and regressors of ai.onnx.ml share: what becomes of scores, and labels.

#include <string_view>

#include "tenon/sdk/build.hpp"

namespace tenon::ops {

// y: [rows, scores], by the word of the attribute post_transform: along the last axis, in operators
// that every backend has. The inverse of the normal distribution is that of Winitzki (2008) for
// erf, as ONNX's reference implementation and ONNX Runtime have it.
Value transformed(Builder& b, Value y, std::string_view how);

// Labels are integers here, of one class or more. What: the attributes of integers and of texts.
Result<std::vector<int64_t>> labels_of(Node node, std::string_view ints, std::string_view texts);
// The label with the highest score of each row, the first of equal ones. y: [rows, labels].
Value best_label(Builder& b, Value y, const std::vector<int64_t>& labels);
// One score for two classes: the second label where it is over the limit.
Value label_over(Builder& b, Value y, double limit, const std::vector<int64_t>& labels);

}  // namespace tenon::ops
