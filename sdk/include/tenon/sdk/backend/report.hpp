// SPDX-License-Identifier: Apache-2.0
#pragma once
// The texts that describe() and profile() give, as JSON.

#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "tenon/sdk/status.hpp"
#include "tenon/utf8.hpp"

namespace tenon::backend {

inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char c : valid_utf8(text)) {
    char escape[8] = {c};
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) std::snprintf(escape, sizeof escape, "\\u%04x", c);
    out += escape;
  }
  return out + "\"";
}

// The members of each of the items, joined to one list: member(item) is the JSON of one.
template <class Items, class Member>
std::string listed(const Items& items, Member&& member) {
  std::string text;
  for (const auto& item : items)
    text += cat(text.empty() ? "" : ", ", member(item));
  return "[" + text + "]";
}

// {"kernel": how many steps run it, ...}; a step has a member `kernel`.
template <class Steps>
std::string kernel_counts(const Steps& steps) {
  std::map<std::string_view, int> counts;
  for (const auto& step : steps)
    ++counts[step.kernel];
  std::string text;
  for (const auto& [kernel, count] : counts)
    text += cat(text.empty() ? "" : ", ", json_text(kernel), ": ", count);
  return "{" + text + "}";
}

// One layer of profile(): of a Layer, or of a step that has the same members.
struct Layer {
  std::string_view name, op, kernel;
  double flops = 0, bytes = 0;
};
template <class Step>
std::string layer_text(const Step& step, uint64_t ns) {
  return cat("{\"name\": ", json_text(step.name), ", \"op\": ", json_text(step.op),
             ", \"kernel\": ", json_text(step.kernel), ", \"ns\": ", ns,
             ", \"flops\": ", step.flops, ", \"bytes\": ", step.bytes, "}");
}

inline uint64_t now_ns() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace tenon::backend
