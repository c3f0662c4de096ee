// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is made of a schema's text, made once and kept as long as the process: schemas are few and
// do not change, and they are read at each plan and for each component that is created.
// Thread-safe.

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "values/json_any.hpp"

namespace tenon::host {

template <class Made>
class Kept {
 public:
  // nullptr: nothing yet.
  const Made* find(std::string_view text) {
    std::lock_guard hold(lock_);
    auto found = by_text_.find(text);
    return found == by_text_.end() ? nullptr : &found->second;
  }
  // What another thread has kept meanwhile stays.
  const Made& keep(std::string_view text, Made made) {
    std::lock_guard hold(lock_);
    return by_text_.emplace(text, std::move(made)).first->second;
  }

 private:
  std::mutex lock_;
  std::map<std::string, Made, std::less<>> by_text_;
};

// The text as JSON; null where it is none.
const Json& schema_json(std::string_view text);
// Its options by name; an empty object where it has none.
const Json& schema_properties(std::string_view text);

}  // namespace tenon::host
