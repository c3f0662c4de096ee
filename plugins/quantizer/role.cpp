// SPDX-License-Identifier: Apache-2.0
#include "role.hpp"

namespace tenon::quantizer {
namespace {

int64_t number_of(const tn_quant_number& number, Node node) {
  bool first = number.attribute.len == 0 || node.attr_int(view(number.attribute)) != 0;
  return first ? number.value : number.otherwise;
}

}  // namespace

Role role_of(Node node) {
  Role role;
  const tn_op* row = node.row();
  role.has_row = row != nullptr;
  if (!row) return role;
  const tn_op_columns& columns = *services.columns->columns(row);
  role.pointwise = row->traits & TN_OP_POINTWISE;
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

}  // namespace tenon::quantizer
