// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tn_any that owns what it points at: texts and lists are copied, tensors, graphs and components
// are retained. Tensors are dense: of others it keeps a copy. For options, attributes and notes.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/base.h"

#include "services/status.hpp"

namespace tenon::host {

class Any {
 public:
  Any() = default;
  Any(const Any& other);
  Any(Any&& other) noexcept;
  Any& operator=(Any other) noexcept;
  ~Any();

  // Refuses lists without elements to point at, unknown tags and NULL objects.
  static Result<Any> copy_of(const tn_any& value);
  static Any i64(int64_t value);
  static Any f64(double value);
  static Any boolean(bool value);
  static Any text(std::string value);
  static Any i64s(std::vector<int64_t> values);
  static Any f64s(std::vector<double> values);
  static Any texts(std::vector<std::string> values);

  // Borrowed; valid as long as this object is neither moved nor changed.
  tn_any get() const;
  uint32_t tag() const { return value_.tag; }
  // The same number, text or list, or the same object.
  bool operator==(const Any& other) const {
    return tag() == other.tag() && value_.len == other.value_.len &&
           value_.v.u == other.value_.v.u && storage_ == other.storage_;
  }

 private:
  using Storage = std::variant<std::monostate,
                               std::string,
                               std::vector<int64_t>,
                               std::vector<double>,
                               std::vector<std::string>>;
  explicit Any(tn_any value, Storage storage = {});
  void swap(Any& other) noexcept;

  tn_any value_{};  // scalars and objects; v.p of texts and lists is filled in by get()
  Storage storage_;
  std::vector<tn_str> views_;  // of the texts
};

// For messages: "1.5", and not each of the digits that a double has.
std::string number_text(double value);
// "1.5", "'abc'", "[1, 2]", "a tensor": for messages.
std::string any_text(const tn_any& value);

}  // namespace tenon::host
