// SPDX-License-Identifier: Apache-2.0
#pragma once
// A number of a loss or an optimizer that may change from step to step: a scalar constant
// that is marked with the name of its option. Whoever runs the step may put an input in its place.

#include "tenon/sdk/build.hpp"

namespace tenon {

inline constexpr std::string_view kSettingNote = "setting";

inline Value setting(Builder& b, std::string_view name, double value, uint32_t dtype = TN_F32) {
  Value made = b.number(value, dtype);
  if (made)
    if (Status failed = b.edit().set_note(made.id, kSettingNote, any_text(name)); !failed.ok())
      b.fail(std::move(failed));
  return made;
}

}  // namespace tenon
