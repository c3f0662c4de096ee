// SPDX-License-Identifier: Apache-2.0
#include "role.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tenon::quantizer {
namespace {

int64_t number_of(const tn_quant_number& number, Node node) {
  bool first = number.attribute.len == 0 || node.attr_int(view(number.attribute)) != 0;
  return first ? number.value : number.otherwise;
}

// By its axes: all of input 0's are the result's, in the same order, and none is mixed along.
bool is_elementwise(const tn_axes* axes) {
  if (!axes || axes->n_inputs == 0 || axes->n_outputs == 0) return false;
  const tn_axes_operand& from = axes->operands[0];
  const tn_axes_operand& to = axes->operands[axes->n_inputs];
  if (from.n_terms == 0 || from.n_terms != to.n_terms) return false;
  constexpr uint32_t kMixed = TN_AXES_TERM_REDUCED | TN_AXES_TERM_PRIMED | TN_AXES_TERM_GROUPED;
  for (uint32_t t = 0; t < from.n_terms; ++t) {
    const tn_axes_term& a = axes->terms[from.first_term + t];
    const tn_axes_term& b = axes->terms[to.first_term + t];
    if (a.label == TN_AXES_NO_LABEL || a.label != b.label || ((a.flags | b.flags) & kMixed) != 0)
      return false;
  }
  return true;
}

}  // namespace

Role role_of(Node node) {
  Role role;
  const tn_op* row = node.row();
  role.has_row = row != nullptr;
  if (!row) return role;
  const tn_op_columns& columns = *services.columns->columns(row);
  role.pointwise = row->traits & TN_OP_POINTWISE;
  role.is_elementwise = role.pointwise || is_elementwise(node.axes());
  role.lays_side_by_side = columns.coupling == TN_COUPLING_CONCAT;
  role.kind = static_cast<Kind>(columns.quant);
  for (uint64_t i = 0; i < columns.n_products; ++i) {
    const tn_quant_product& one = columns.products[i];
    role.products.push_back({one.act, one.weight, one.bias, number_of(one.axis, node)});
  }
  for (uint64_t i = 0; i < columns.n_stored; ++i)
    role.stored.emplace_back(columns.stored[i].input, number_of(columns.stored[i].axis, node));
  role.rows = columns.rows;
  role.is_fused = columns.quant_flags & TN_QUANT_FUSED;
  return role;
}

bool writes_zeros(Node node) {
  constexpr std::array<std::string_view, 4> kTypes = {"CenterCropPad", "MaxUnpool", "Pad", "Trilu"};
  return std::find(kTypes.begin(), kTypes.end(), node.type()) != kTypes.end();
}

bool keeps_scale(Node node) {
  if (node.is("Resize"))  // that of a region writes a number of its own beside it
    return node.attr_text("coordinate_transformation_mode") != "tf_crop_and_resize";
  const Role role = role_of(node);
  return role.kind == Kind::kSameScale || role.lays_side_by_side;
}

}  // namespace tenon::quantizer
