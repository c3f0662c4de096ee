// SPDX-License-Identifier: Apache-2.0
#pragma once
// The edge of the C ABI: no exception leaves a function that a plugin or a program calls.

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "services/status.hpp"

namespace tenon::host {

// Runs a function that returns a Status; what it throws becomes one.
template <class Body>
tn_status* guarded(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)().release();
  } catch (const std::bad_alloc&) {
    return Status(TN_RESOURCE_EXHAUSTED, "out of memory").release();
  } catch (const std::exception& thrown) {
    return Status(TN_INTERNAL, thrown.what()).release();
  }
}

// The same for a function that returns a Result<Ref<T>>: *out is NULL after a failure.
template <class T, class Body>
tn_status* guarded_out(T** out, Body&& body) noexcept {
  *out = nullptr;
  return guarded([&]() -> Status {
    TN_TRY(made, std::forward<Body>(body)());
    *out = made.release();
    return {};
  });
}

// Runs a function that cannot return a failure, as a log line.
template <class Body>
void quietly(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
  } catch (const std::exception&) {  // no memory for a log line: it is lost
  }
}

// Appends what is written to it to `text`, which outlives it.
inline tn_sink sink_into(std::string* text) {
  return {text, [](void* to, const void* data, uint64_t len) -> tn_status* {
            return guarded([&]() -> Status {
              static_cast<std::string*>(to)->append(static_cast<const char*>(data), len);
              return {};
            });
          }};
}

}  // namespace tenon::host
