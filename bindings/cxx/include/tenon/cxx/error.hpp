// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors of the bindings: a tn_status becomes an exception, because Lua and Python turn exceptions
// into errors of their own. Nothing here lets one pass a C function: see callback() in session.hpp.

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "tenon/tenon.h"

#include "tenon/cat.hpp"

namespace tenon::cxx {

inline tn_str str(std::string_view text) {
  return {text.data(), text.size()};
}
inline std::string_view view(tn_str text) {
  return {text.data, static_cast<size_t>(text.len)};
}

using tenon::cat;

class Error : public std::runtime_error {
 public:
  Error(int32_t code, const std::string& message, std::string domain = {})
      : std::runtime_error(message), code_(code), domain_(std::move(domain)) {}
  int32_t code() const { return code_; }
  // The component or plugin that failed, where the binding asks for it.
  const std::string& domain() const { return domain_; }

 private:
  int32_t code_;
  std::string domain_;
};

[[noreturn]] inline void invalid(const std::string& message) {
  throw Error(TN_INVALID_ARGUMENT, message);
}

// Collects what a function writes to a tn_sink.
class TextSink {
 public:
  const tn_sink* get() const { return &sink_; }
  std::string& text() { return text_; }
  TextSink() = default;
  TextSink(const TextSink&) = delete;
  TextSink& operator=(const TextSink&) = delete;

 private:
  static tn_status* TN_CALL write(void* ctx, const void* data, uint64_t len) {
    static_cast<std::string*>(ctx)->append(static_cast<const char*>(data), len);
    return nullptr;
  }
  std::string text_;
  tn_sink sink_{&text_, write};
};

// Takes the status over. The text is one line: what failed and all its causes. domain: where the
// caller has read it (tn_host_status.domain).
inline Error error_of(tn_status* status, std::string domain = {}) {
  TextSink text;
  int32_t code = tenon_status_code(status);
  tn_status* failed = tenon_status_text(status, text.get());
  if (failed) text.text() = view(tenon_status_message(status));
  tenon_status_release(failed);
  tenon_status_release(status);
  for (char& c : text.text()) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return {code, text.text(), std::move(domain)};
}

// Throws what a call answered.
inline void check(tn_status* status) {
  if (status) throw error_of(status);
}

}  // namespace tenon::cxx
