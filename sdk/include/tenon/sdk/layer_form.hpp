// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layout of a weight in a product or a convolution, from its operator's row: by axes, or by the
// coupling `matrices` where attributes say whether the matrices are transposed.

#include <optional>
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

// Nothing where the row does not say it, or says something else than a sum over one axis.
inline std::optional<LayerForm> layer_form(Node node, uint64_t act, uint64_t weight) {
  Stated coupling(node);
  if (coupling.family() == TN_COUPLING_MATRICES) return form_by_matrices(coupling);
  const tn_axes* axes = node.axes();
  uint64_t n = 0;
  if (!axes || !Status(services.columns->layout(node.graph, node.id, nullptr, 0, &n)).ok())
    return {};
  std::vector<tn_axes_place> places(n);
  if (!Status(services.columns->layout(node.graph, node.id, places.data(), n, &n)).ok()) return {};
  struct Label {
    int64_t act = -1, weight = -1;
    bool in_output = false;
  };
  std::vector<Label> labels(axes->n_labels);
  LayerForm form;
  for (const tn_axes_place& place : places) {
    const tn_axes_term& term = axes->terms[place.term];
    if (term.label == TN_AXES_NO_LABEL || place.count == 0) continue;
    Label& label = labels[term.label];
    auto axis = static_cast<int64_t>(place.axis + place.count) - 1;
    if (place.operand == act) label.act = axis;
    if (place.operand == weight) label.weight = axis;
    if (place.operand >= node.n_inputs()) label.in_output = true;
    if (place.operand >= node.n_inputs() && (term.flags & TN_AXES_TERM_PRIMED)) form.slides = true;
  }
  for (uint32_t l = 0; l < axes->n_labels; ++l) {
    const Label& label = labels[l];
    const tn_axes_label& stated = axes->labels[l];
    if (stated.kind == TN_AXES_SINGLE && stated.bind_len) {
      form.groups = node.attr_int({axes->text + stated.bind_offset, stated.bind_len}, 1);
    } else if (label.act >= 0 && label.weight >= 0) {
      if (label.in_output) form.is_stack = true;
      if (label.in_output) continue;
      if (form.weight_in >= 0) return {};
      form.act_in = label.act;
      form.weight_in = label.weight;
    } else if (label.weight >= 0 && label.in_output) {
      if (form.weight_out >= 0) return {};
      form.weight_out = label.weight;
    } else if (label.weight >= 0) {
      for (const tn_axes_place& place : places)
        for (uint32_t i = 0;
             place.operand == weight && axes->terms[place.term].label == l && i < place.count; ++i)
          form.window.push_back(place.axis + i);
    } else if (label.act >= 0 && label.in_output) {
      form.act_rows = std::max(form.act_rows, label.act);
    }
  }
  if (form.weight_in < 0 || form.weight_out < 0) return {};
  return form;
}

}  // namespace tenon
