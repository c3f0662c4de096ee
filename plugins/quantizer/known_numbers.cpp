// SPDX-License-Identifier: Apache-2.0
#include "known_numbers.hpp"

#include <algorithm>

#include "float_nodes.hpp"

namespace tenon::quantizer {

std::optional<Known> known_of(Value v) {
  if (!v) return std::nullopt;
  if (v.is_constant()) return is_float(v) ? std::optional(Known{v, {1}, 0}) : std::nullopt;
  Node dq = v.producer();
  if (!dq || !dq.is("DequantizeLinear") || !dq.input(0).is_constant() ||
      !dq.input(1).is_constant() || dq.attr_int("block_size") != 0)
    return std::nullopt;
  if (dq.input(2)) {
    Tensor zeros = dq.input(2).constant();
    const auto* bytes = static_cast<const char*>(data_of<const void>(zeros.dl()));
    const uint64_t count = bytes_of(dq.input(2).dtype(), element_count(zeros.dl()));
    if (std::any_of(bytes, bytes + count, [](char byte) { return byte != 0; })) return std::nullopt;
  }
  Known out{dq.input(0), {}, dq.attr_int("axis", 1)};
  Tensor scale = dq.input(1).constant();
  const auto* numbers = scale.data<float>();
  for (int64_t i = 0; i < element_count(scale.dl()); ++i)
    out.scale.push_back(static_cast<double>(numbers[i]));
  if (out.axis < 0) out.axis += static_cast<int64_t>(out.numbers.type().rank());
  return out;
}

}  // namespace tenon::quantizer
