// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the axes of one node's inputs and outputs are coupled: by its row's column `coupling`, one
// rule for each family of it, else by axes, as pointwise, or as a view. No operator is known by
// name.

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "tenon/sdk/coupling.hpp"
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

// Makes the node compute of masked entries what it will compute without them. Called for all nodes,
// before constants are replaced.
using MaskRewrite = Status (*)(EditView, Node, const Kept&);

struct Rule {
  uint32_t family;  // TN_COUPLING_*
  Couple couple;
  Rewrite rewrite = nullptr;
  MaskRewrite mask = nullptr;  // none: zeros do as well as nothing
};

// Tables of the files in rules/.
std::span<const Rule> joining_rules();   // concat, split, slice
std::span<const Rule> same_rules();      // same
std::span<const Rule> moving_rules();    // permute, pad, scale, gather, shape
std::span<const Rule> reducing_rules();  // reduce
std::span<const Rule> product_rules();   // matrices, equation
std::span<const Rule> view_rules();      // view
std::span<const Rule> attention_rules();
std::span<const Rule> recurrent_rules();

// By columns of the row.
Refusal couple_axes(Node node, const tn_axes& axes, Couplings& couplings);
Status rewrite_axes(EditView edit, Node node, const tn_axes& axes, const Kept& kept);
Refusal couple_pointwise(Node node, Couplings& couplings);
Refusal couple_view(Node node, Couplings& couplings);

// Whichever of these applies.
void couple(Node node, Couplings& couplings);
Status rewrite(EditView edit, Node node, const Kept& kept);
Status mask(EditView edit, Node node, const Kept& kept);

// An axis attribute or number, counted from 0; nothing when it is out of range.
std::optional<size_t> axis_in(int64_t axis, size_t rank);
// Size of an axis after the removal.
int64_t size_after(Value value, size_t axis, const Kept& kept);

}  // namespace tenon::pruner
