// SPDX-License-Identifier: Apache-2.0
#include "stored_value.hpp"

#include <map>

namespace tenon::quantizer {
namespace {

bool is_number(Value v) {
  return v && v.is_constant() && v.type().rank() == 0;
}

}  // namespace

tn_range StoredValues::range() const {
  double step = *scale.constant().data<float>();
  if (is_signed) return {-127 * step, 127 * step, 0, 0};
  double zero_point = *zero.constant().data<uint8_t>();
  return {-zero_point * step, (255 - zero_point) * step, 0, 0};
}

Result<std::vector<StoredValues>> stored_values(Graph graph) {
  std::vector<StoredValues> out;
  std::map<tn_value_id, size_t> by_scale;
  for (Node node : graph.nodes()) {
    if (!node.is("QuantizeLinear") || node.input(0).is_constant()) continue;
    Value scale = node.input(1), zero = node.input(2);
    if (!is_number(scale) || !is_number(zero) || scale.dtype() != TN_F32) continue;
    if (zero.dtype() != TN_U8 && zero.dtype() != TN_I8) continue;
    auto [at, fresh] = by_scale.emplace(scale.id, out.size());
    if (fresh) out.push_back({scale, zero, {}, zero.dtype() == TN_I8});
    out[at->second].values.push_back(node.input(0));
  }
  if (!out.empty()) return out;
  return Status(TN_FAILED_PRECONDITION,
                "expected a model with activations behind QuantizeLinear, as quantizer.qat leaves "
                "it, got none");
}

}  // namespace tenon::quantizer
