// SPDX-License-Identifier: Apache-2.0
#include "byte_table.hpp"

#include "lowering/epilogue.hpp"

namespace tenon::onednn {

std::optional<Requantization> requantization(const View& from, const View& to) {
  if (from.channels != nullptr || to.channels != nullptr) return std::nullopt;
  if (from.type == to.type && is_same(from.quant, to.quant)) return Requantization{};
  const bool are_quantized = from.is_quantized() && to.is_quantized() &&
                             kernels::element_bytes(from.type) == 1 &&
                             kernels::element_bytes(to.type) == 1;
  if (!are_quantized) return std::nullopt;
  const tn_expr_node same{TN_EXPR_INPUT, 0, 0, 0, 0};
  Requantization made{std::make_shared<std::array<uint8_t, 256>>()};
  const std::string why = kernels::make_table({&same, 1}, 0, {nullptr, from.type, from.quant},
                                              {nullptr, to.type, to.quant}, made.table->data());
  return why.empty() ? std::optional(made) : std::nullopt;
}

}  // namespace tenon::onednn
