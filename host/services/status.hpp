// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors inside the host. A Status owns a tn_status (NULL is success); a Result<T> is a value or a
// Status. Functions that the ABI exports release() theirs; all others pass them up with TN_TRY.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tenon/base.h"

#include "tenon/cat.hpp"
#include "tenon/nearest.hpp"

namespace tenon::host {

inline std::string_view view(tn_str text) {
  return text.data ? std::string_view(text.data, text.len) : std::string_view();
}
inline tn_str str(std::string_view text) {
  return {text.data(), text.size()};
}

class [[nodiscard]] Status {
 public:
  Status() {}
  explicit Status(tn_status* taken) : raw_(taken) {}
  Status(int32_t code,
         std::string_view message,
         std::string_view domain = "host",
         Status cause = {});
  Status(Status&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Status& operator=(Status&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;
  ~Status();

  bool ok() const { return raw_ == nullptr; }
  explicit operator bool() const { return ok(); }
  int32_t code() const;
  std::string text() const;  // the whole chain on one line
  // The failure with what it happened in, and with its code.
  Status in(std::string_view what, std::string_view domain = "host") &&;
  tn_status* release() { return std::exchange(raw_, nullptr); }
  const tn_status* raw() const { return raw_; }

 private:
  tn_status* raw_ = nullptr;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}             // NOLINT: conversions are the point
  Result(Status failure) : failure_(std::move(failure)) {}  // NOLINT
  bool ok() const { return failure_.ok(); }
  explicit operator bool() const { return ok(); }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  Status status() { return std::move(failure_); }

 private:
  std::optional<T> value_;
  Status failure_;
};

using tenon::cat;

inline Status invalid(std::string_view message) {
  return {TN_INVALID_ARGUMENT, message};
}
inline Status not_found(std::string_view message) {
  return {TN_NOT_FOUND, message};
}

}  // namespace tenon::host

#define TN_JOIN_(a, b) a##b
#define TN_JOIN(a, b) TN_JOIN_(a, b)
// Leaves the function with the failure of a Status expression.
#define TN_CHECK(expression)                         \
  do {                                               \
    ::tenon::host::Status tn_status_ = (expression); \
    if (!tn_status_.ok()) return tn_status_;         \
  } while (0)
// Declares `name` from a Result expression, or leaves the function with its failure.
#define TN_TRY(name, expression)                                                          \
  auto TN_JOIN(tn_result_, __LINE__) = (expression);                                      \
  if (!TN_JOIN(tn_result_, __LINE__).ok()) return TN_JOIN(tn_result_, __LINE__).status(); \
  auto& name = *TN_JOIN(tn_result_, __LINE__)
