// SPDX-License-Identifier: Apache-2.0
#pragma once
// The edge of the C ABI: no exception leaves a function that a plugin or a program calls.

#include <exception>
#include <new>
#include <string>
#include <type_traits>
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
  } catch (...) {  // of a callback that was compiled from C++
    return Status(TN_INTERNAL, "something was thrown that is no std::exception").release();
  }
}

// The same for a function that returns a Result: of a Ref, a pointer or an id, which *out gets. It
// is NULL or 0 after a failure.
template <class Out, class Body>
tn_status* guarded_out(Out* out, Body&& body) noexcept {
  *out = {};
  return guarded([&]() -> Status {
    TN_TRY(made, std::forward<Body>(body)());
    if constexpr (std::is_assignable_v<Out&, decltype(made)>)
      *out = made;
    else
      *out = made.release();
    return {};
  });
}

// Runs a function that cannot return a failure, as a log line.
template <class Body>
void quietly(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
  } catch (...) {  // no memory for a log line, or its callback failed: it is lost
  }
}

// Writes to a sink in one call; empty text is not written.
inline Status write(const tn_sink* sink, std::string_view text) {
  if (text.empty()) return {};
  return Status(sink->write(sink->ctx, text.data(), text.size()));
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
