// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors in a plugin: Status owns a tn_status (NULL is success), Result<T> is a value or a Status.
// No exception leaves guard(): the body of every function that the ABI calls runs inside of it.

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "tenon/cat.hpp"
#include "tenon/sdk/services.hpp"

namespace tenon {

// A tn_sink that collects what is written: StringSink s; f(s.get()); s.text.
struct StringSink {
  std::string text;
  tn_sink raw{this, [](void* self, const void* data, uint64_t len) -> tn_status* {
                static_cast<StringSink*>(self)->text.append(static_cast<const char*>(data), len);
                return nullptr;
              }};
  StringSink() = default;
  StringSink(const StringSink&) = delete;
  StringSink& operator=(const StringSink&) = delete;
  const tn_sink* get() const { return &raw; }
};

class [[nodiscard]] Status {
 public:
  Status() {}
  explicit Status(tn_status* taken) : raw_(taken) {}
  Status(int32_t code, std::string_view message, std::string_view domain = {})
      : raw_(services.status->make(nullptr, code, str(domain), str(message), nullptr)) {}
  Status(Status&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Status& operator=(Status&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;
  ~Status() {
    if (raw_) services.status->release(raw_);
  }

  bool ok() const { return raw_ == nullptr; }
  int32_t code() const { return services.status->code(raw_); }
  std::string message() const { return std::string(view(services.status->message(raw_))); }
  // With its causes; message() is the last failure alone.
  std::string text() const {
    StringSink whole;
    if (raw_) Status ignored(services.status->text(raw_, whole.get()));
    return whole.text;
  }
  const tn_status* raw() const { return raw_; }
  tn_status* release() { return std::exchange(raw_, nullptr); }
  // The same failure with what was being done in front.
  Status in(std::string_view doing) && {
    if (ok()) return {};
    int32_t same = code();
    return Status(services.status->make(nullptr, same, {}, str(doing), release()));
  }

 private:
  tn_status* raw_ = nullptr;
};

inline Status invalid(std::string_view message) {
  return {TN_INVALID_ARGUMENT, message};
}
inline Status unsupported(std::string_view message) {
  return {TN_UNIMPLEMENTED, message};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}             // NOLINT: conversions are the point
  Result(Status failure) : failure_(std::move(failure)) {}  // NOLINT
  bool ok() const { return failure_.ok(); }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  const Status& status() const& { return failure_; }
  Status status() && { return std::move(failure_); }  // moves it out: a status has one owner

 private:
  std::optional<T> value_;
  Status failure_;
};

// Runs body (returning Status) and turns what it throws into a status.
template <class Body>
tn_status* guard(Body&& body) noexcept {
  try {
    return body().release();
  } catch (const std::bad_alloc&) {
    return services.status->make(nullptr, TN_RESOURCE_EXHAUSTED, {}, str("out of memory"), nullptr);
  } catch (const std::exception& thrown) {
    return services.status->make(nullptr, TN_INTERNAL, {}, str(thrown.what()), nullptr);
  } catch (...) {
    return services.status->make(nullptr, TN_INTERNAL, {}, str("unknown exception"), nullptr);
  }
}

}  // namespace tenon

#define TN_JOIN_(a, b) a##b
#define TN_JOIN(a, b) TN_JOIN_(a, b)
// Leaves the function with the failure of a Status (or tn_status*) expression.
#define TN_CHECK(expression) TN_CHECK_(TN_JOIN(tn_status_, __COUNTER__), expression)
#define TN_CHECK_(status, expression)   \
  do {                                  \
    ::tenon::Status status{expression}; \
    if (!status.ok()) return status;    \
  } while (0)
// Declares `name` from a Result expression, or leaves the function with its failure.
#define TN_TRY(name, expression) TN_TRY_(TN_JOIN(tn_result_, __COUNTER__), name, expression)
#define TN_TRY_(result, name, expression)              \
  auto result = (expression);                          \
  if (!result.ok()) return std::move(result).status(); \
  auto& name = *result
