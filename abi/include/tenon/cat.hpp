// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: texts of messages. Host, SDK and bindings include it. Pure: any thread.

#include <cstdio>
#include <string>
#include <type_traits>

namespace tenon {

// 0.5, 1e-07, 300: as few digits as a reader needs to know the float32 again.
inline std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Joins its arguments into one text: cat("expected ", 3, " inputs, got ", n).
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  auto add = [&out](const auto& part) {
    if constexpr (std::is_floating_point_v<std::decay_t<decltype(part)>>) {
      out += short_text(part);
    } else if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>) {
      out += std::to_string(part);
    } else {
      out += part;
    }
  };
  (add(parts), ...);
  return out;
}

}  // namespace tenon
