// SPDX-License-Identifier: Apache-2.0
#include "known_numbers.hpp"

#include <algorithm>
#include <cmath>

#include "tenon/sdk/number.hpp"

#include "float_nodes.hpp"

namespace tenon::quantizer {

bool are_zero_points_zero(Value zeros) {
  if (!zeros) return true;
  if (!zeros.is_constant()) return false;
  const Tensor tensor = zeros.constant();
  const auto* bytes = static_cast<const char*>(data_of<const void>(tensor.dl()));
  const uint64_t count = bytes_of(zeros.dtype(), element_count(tensor.dl()));
  return std::all_of(bytes, bytes + count, [](char byte) { return byte == 0; });
}

std::optional<Known> known_of(Value v) {
  if (!v) return std::nullopt;
  if (v.is_constant()) return holds_floats(v) ? std::optional(Known{v, {1}, 0}) : std::nullopt;
  Node dq = v.producer();
  if (!dq || !dq.is("DequantizeLinear") || !dq.input(0).is_constant() ||
      !dq.input(1).is_constant() || dq.input(1).dtype() != TN_F32 || dq.attr_int("block_size") != 0)
    return std::nullopt;
  if (!are_zero_points_zero(dq.input(2))) return std::nullopt;
  Known out{dq.input(0), {}, dq.attr_int("axis", 1)};
  Tensor scale = dq.input(1).constant();
  const auto* numbers = scale.data<float>();
  for (int64_t i = 0; i < element_count(scale.dl()); ++i)
    out.scale.push_back(static_cast<double>(numbers[i]));
  out.axis = positive_axis(out.axis, out.numbers.type().rank());
  return out;
}

std::vector<double> numbers_of(Value v) {
  Known stored{v, {1}, 0};
  if (!v) return {};
  if (!v.is_constant() || holds_floats(v)) {
    std::optional<Known> found = known_of(v);
    if (!found || found->scale.size() != 1) return {};
    stored = *found;
  }
  std::vector<double> out;
  with_numbers(stored.numbers.constant().dl(), [&](const auto* from) {
    for (int64_t i = 0, n = stored.numbers.type().elements(); i < n; ++i)
      out.push_back(static_cast<double>(from[i]) * stored.scale[0]);
  });
  return out;
}

std::vector<double> in_steps(Value v, const std::vector<double>& steps) {
  std::optional<Known> stored = known_of(v);
  if (!stored) return {};
  const int64_t count = stored->numbers.type().elements();
  const bool is_integer = stored->numbers.dtype() == TN_I32;
  if (static_cast<size_t>(count) != steps.size()) return {};
  const std::vector<int64_t> dims = stored->numbers.type().dims;
  if (!dims.empty() && dims.back() != count) return {};
  if (!is_integer && stored->numbers.dtype() != TN_F32) return {};
  const Tensor tensor = stored->numbers.constant();
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i) {
    const auto c = static_cast<size_t>(i);
    const double factor = stored->scale[stored->scale.size() == 1 ? 0 : c];
    const double number = is_integer ? static_cast<double>(tensor.data<int32_t>()[c])
                                     : static_cast<double>(tensor.data<float>()[c]);
    out.push_back(std::round(number * factor / steps[c]));
  }
  return out;
}

Result<Value> transposed(EditView edit, Value integers) {
  const Tensor tensor = integers.constant();
  const auto* from = tensor.data<int8_t>();
  const int64_t rows = integers.type().dims[0], columns = integers.type().dims[1];
  std::vector<int8_t> to(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows * columns; ++i)
    to[static_cast<size_t>(i % columns * rows + i / columns)] = from[i];
  return edit.constant<int8_t>(TN_I8, {columns, rows}, to);
}

}  // namespace tenon::quantizer
