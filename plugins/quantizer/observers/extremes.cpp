// SPDX-License-Identifier: Apache-2.0
#include "extremes.hpp"

namespace tenon::quantizer {

Result<nlohmann::json> parse_saved(std::string_view saved, std::string_view kind) {
  nlohmann::json parsed = nlohmann::json::parse(saved, nullptr, false);
  if (!parsed.is_object() || parsed.value("kind", nlohmann::json()) != kind)
    return invalid(cat("expected the saved state of a ", kind, " observer"));
  return parsed;
}

Result<Extremes> extremes_in(const nlohmann::json& saved) {
  auto broken = [] { return invalid("the saved state of an observer is broken"); };
  auto count = [&](const char* key) {
    return saved.contains(key) && saved[key].is_number_unsigned();
  };
  if (!count("seen") || !count("not_finite")) return broken();
  Extremes out;
  out.seen = saved["seen"];
  out.not_finite = saved["not_finite"];
  if (out.seen == 0) return out;
  for (const char* key : {"low", "high"})
    if (!saved.contains(key) || !saved[key].is_number()) return broken();
  out.low = saved["low"];
  out.high = saved["high"];
  if (!(out.low <= out.high)) return broken();
  return out;
}

}  // namespace tenon::quantizer
