// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages about a name that is none of those known: the names, what was given, and the nearest.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/cxx/error.hpp"

namespace tenon::cxx {

// Levenshtein's, by insertions, deletions and substitutions.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// " (did you mean 'accuracy'?)", or empty where none is near.
inline std::string near_hint(const std::vector<std::string>& known, std::string_view got) {
  const std::string* best = nullptr;
  size_t nearest = got.size() / 2 + 1;
  for (const std::string& one : known) {
    size_t distance = edit_distance(got, one);
    if (distance >= nearest) continue;
    nearest = distance;
    best = &one;
  }
  return best ? cat(" (did you mean '", *best, "'?)") : "";
}

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
             near_hint(known, got));
}

}  // namespace tenon::cxx
