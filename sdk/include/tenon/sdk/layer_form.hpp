// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layout of a weight in a product or a convolution, from its operator's row: by axes, or by the
// coupling `matrices` where attributes say whether the matrices are transposed.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tenon/sdk/coupling.hpp"

namespace tenon {

struct LayerForm {
  int64_t act_in = -1;     // the activation's axis that is summed over
  int64_t act_rows = -1;   // its last axis that the result has, when the weight has it not
  int64_t weight_in = -1;  // axes of the weight: what is summed over, what it makes
  int64_t weight_out = -1;
  std::vector<int64_t> window;  // the weight's own axes: a convolution's
  bool slides = false;          // sizes of the result are not those of the activation
  int64_t groups = 1;
  bool is_stack = false;  // the weight has more axes: a product for each entry of a batch

  bool is_product() const { return !slides && window.empty() && groups == 1 && !is_stack; }
};

inline LayerForm form_by_matrices(const Stated& stated) {
  LayerForm form;
  bool a = stated.integer("transpose_a", 0) != 0, b = stated.integer("transpose_b", 0) != 0;
  form.act_in = a ? 0 : 1;
  form.act_rows = a ? 1 : 0;
  form.weight_in = b ? 1 : 0;
  form.weight_out = b ? 0 : 1;
  return form;
}

namespace detail {

// The last axes of the activation and of the weight that have one label.
struct LabelAxes {
  int64_t act = -1, weight = -1;
  bool in_output = false;
};

// False where it is a second axis to sum over, or a second one that the weight makes.
inline bool add_label(const LabelAxes& at, LayerForm& form) {
  if (at.act >= 0 && at.weight >= 0 && at.in_output) {
    form.is_stack = true;
  } else if (at.act >= 0 && at.weight >= 0) {
    form.act_in = at.act;
    return std::exchange(form.weight_in, at.weight) < 0;
  } else if (at.weight >= 0 && at.in_output) {
    return std::exchange(form.weight_out, at.weight) < 0;
  } else if (at.act >= 0 && at.in_output) {
    form.act_rows = std::max(form.act_rows, at.act);
  }
  return true;
}

}  // namespace detail

// Nothing where the row does not say it, or says something else than a sum over one axis.
inline std::optional<LayerForm> layer_form(Node node, uint64_t act, uint64_t weight) {
  Stated coupling(node);
  if (coupling.family() == TN_COUPLING_MATRICES) return form_by_matrices(coupling);
  const tn_axes* axes = node.axes();
  auto places = axes ? axes_places(node) : std::nullopt;
  if (!places) return {};
  LayerForm form;
  std::vector<detail::LabelAxes> labels(axes->n_labels);
  for (const tn_axes_place& place : *places) {
    const tn_axes_term& term = axes->terms[place.term];
    if (term.label == TN_AXES_NO_LABEL || place.count == 0) continue;
    detail::LabelAxes& label = labels[term.label];
    auto axis = static_cast<int64_t>(place.axis + place.count) - 1;
    bool is_output = place.operand >= node.n_inputs();
    if (place.operand == act) label.act = axis;
    if (place.operand == weight) label.weight = axis;
    label.in_output = label.in_output || is_output;
    form.slides = form.slides || (is_output && (term.flags & TN_AXES_TERM_PRIMED) != 0);
  }
  auto binds = [&](uint32_t l) {  // an attribute says its size: the groups of a convolution
    return axes->labels[l].kind == TN_AXES_SINGLE && axes->labels[l].bind_len > 0;
  };
  for (uint32_t l = 0; l < axes->n_labels; ++l) {
    const tn_axes_label& stated = axes->labels[l];
    if (binds(l))
      form.groups = node.attr_int({axes->text + stated.bind_offset, stated.bind_len}, 1);
    else if (!detail::add_label(labels[l], form))
      return {};
  }
  for (const tn_axes_place& place : *places) {
    uint32_t l = axes->terms[place.term].label;
    if (place.operand != weight || l == TN_AXES_NO_LABEL || binds(l)) continue;
    if (labels[l].act >= 0 || labels[l].in_output) continue;
    for (uint32_t i = 0; i < place.count; ++i)
      form.window.push_back(place.axis + i);
  }
  if (form.weight_in < 0 || form.weight_out < 0) return {};
  return form;
}

}  // namespace tenon
