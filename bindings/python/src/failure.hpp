// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tn_status as a C++ exception; module.cpp turns it into the Python class of its code.

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "tenon/host/status.h"
#include "tenon/tenon.h"

namespace tenon::python {

inline tn_str str(std::string_view text) {
  return {text.data(), text.size()};
}
inline std::string_view view(tn_str text) {
  return {text.data, static_cast<size_t>(text.len)};
}

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  auto add = [&out](const auto& part) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>) {
      out += std::to_string(part);
    } else {
      out += part;
    }
  };
  (add(parts), ...);
  return out;
}

class Failure : public std::runtime_error {
 public:
  Failure(int32_t status_code, std::string from, const std::string& message)
      : std::runtime_error(message), code(status_code), domain(std::move(from)) {}
  int32_t code;
  std::string domain;
};

[[noreturn]] inline void invalid(const std::string& message) {
  throw Failure(TN_INVALID_ARGUMENT, "python", message);
}

// Collects what a function writes to a tn_sink. What it holds is touched without the GIL.
class TextSink {
 public:
  TextSink() = default;
  TextSink(const TextSink&) = delete;
  TextSink& operator=(const TextSink&) = delete;
  const tn_sink* get() const { return &sink_; }
  std::string text;

 private:
  static tn_status* TN_CALL write(void* ctx, const void* data, uint64_t len) {
    static_cast<std::string*>(ctx)->append(static_cast<const char*>(data), len);
    return nullptr;
  }
  tn_sink sink_{&text, write};
};

}  // namespace tenon::python
