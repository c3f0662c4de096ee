// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages about a name that is none of those known: the names, what was given, and the nearest.

#include <string>
#include <string_view>
#include <vector>

#include "tenon/cxx/error.hpp"
#include "tenon/nearest.hpp"

namespace tenon::cxx {

inline std::string listed(const std::vector<std::string>& names, std::string_view none = "(none)") {
  std::string all;
  for (const std::string& one : names)
    all += cat(all.empty() ? "" : ", ", one);
  return all.empty() ? std::string(none) : all;
}

// "expected one of accuracy, mse, got 'acuracy' (did you mean 'accuracy'?)". more: what else may be
// given, behind the names.
inline std::string expected_one_of(const std::vector<std::string>& known,
                                   std::string_view got,
                                   std::string_view none = "(none)",
                                   std::string_view more = "") {
  return cat("expected one of ", listed(known, none), more, ", got '", got, "'",
             did_you_mean(got, known));
}

}  // namespace tenon::cxx
