// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sparsity by pattern: "2:4" keeps 2 of each 4 neighbours. Neighbours lie along the axis that the
// weight is summed over: of a convolution along its input channels, at each tap of its window apart
// (Mishra et al., "Accelerating sparse deep neural networks", 2021). Any thread.

#include <charconv>
#include <optional>
#include <string_view>

#include "tenon/sdk/status.hpp"

namespace tenon {

struct TwoNumbers {
  int64_t first = 0, second = 0;
};
// Two numbers up to 999 around a sign; nothing where the text is something else.
inline std::optional<TwoNumbers> two_numbers(std::string_view text, char sign) {
  const size_t at = text.find(sign);
  if (at == std::string_view::npos) return std::nullopt;
  auto number = [](std::string_view digits, int64_t* to) {
    const char* const end = digits.data() + digits.size();
    const auto [used, error] = std::from_chars(digits.data(), end, *to);
    return error == std::errc() && used == end && *to <= 999;
  };
  TwoNumbers made;
  const bool is_read =
      number(text.substr(0, at), &made.first) && number(text.substr(at + 1), &made.second);
  return is_read ? std::optional(made) : std::nullopt;
}

struct NofM {
  int64_t n = 0, m = 0;  // m of 0: no pattern

  // The option `pattern`; an empty text is no pattern.
  static Result<NofM> read(std::string_view text) {
    if (text.empty()) return NofM{};
    const std::optional<TwoNumbers> pair = two_numbers(text, ':');
    if (!pair || pair->first < 1 || pair->first >= pair->second)
      return invalid(
          cat("option pattern: expected N:M with 0 < N < M, such as 2:4, got '", text, "'"));
    return NofM{pair->first, pair->second};
  }
  // Why a weight whose summed axis has this extent cannot have the pattern; empty: it can.
  std::string why_not(int64_t extent) const {
    if (m == 0 || extent % m == 0) return "";
    return cat("its input axis of ", extent, " does not divide into groups of ", m);
  }
};

}  // namespace tenon
