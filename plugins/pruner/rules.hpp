// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the axes of one node's inputs and outputs are coupled. Most operators say it in their row: by
// axes, as pointwise, or as a view. The others have a rule here, one file per family.

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "tenon/sdk/edit.hpp"

#include "couplings.hpp"

namespace tenon::pruner {

// Nothing, or why nothing is known: then all axes of the node's values stay.
using Refusal = std::optional<std::string>;
using Couple = Refusal (*)(Node, Couplings&);

// Entries of an axis that stay after the removal, ascending; nullptr: all.
using Kept = std::function<const std::vector<int64_t>*(Value, size_t axis)>;
// Brings what the node states (sizes, offsets, counts) up to date with what stays. Called for
// nodes with an axis that loses entries, before constants are replaced.
using Rewrite = Status (*)(EditView, Node, const Kept&);

struct OpRule {
  std::string_view type;  // of ONNX
  Couple couple;
  Rewrite rewrite = nullptr;
};

// Tables of the files in rules/.
std::span<const OpRule> joining_rules();   // Concat, Split, Slice
std::span<const OpRule> moving_rules();    // Transpose, Pad, Resize, Gather, Shape, Dropout
std::span<const OpRule> reducing_rules();  // the Reduce family
std::span<const OpRule> product_rules();   // Gemm

// By columns of the row.
Refusal couple_axes(Node node, const tn_axes& axes, Couplings& couplings);
Status rewrite_axes(EditView edit, Node node, const tn_axes& axes, const Kept& kept);
Refusal couple_pointwise(Node node, Couplings& couplings);
Refusal couple_view(Node node, Couplings& couplings);
Status rewrite_view(EditView edit, Node node, const Kept& kept);

// Whichever of these applies.
void couple(Node node, Couplings& couplings);
Status rewrite(EditView edit, Node node, const Kept& kept);

// An axis attribute or number, counted from 0; nothing when it is out of range.
std::optional<size_t> axis_in(int64_t axis, size_t rank);
// Size of an axis after the removal.
int64_t size_after(Value value, size_t axis, const Kept& kept);

}  // namespace tenon::pruner
