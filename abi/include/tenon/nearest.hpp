// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: the known name that a given one is nearest to, for messages. Host and
// bindings include it. Pure functions: any thread.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

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

// The first of the candidates nearest to `word`, or empty when none is near.
template <class Range>
std::string_view nearest(std::string_view word, const Range& candidates) {
  std::string_view best;
  size_t best_distance = word.size() / 2 + 1;
  for (std::string_view candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

// " (did you mean 'accuracy'?)", or empty when none is near.
template <class Range>
std::string did_you_mean(std::string_view word, const Range& candidates) {
  std::string_view near = nearest(word, candidates);
  return near.empty() ? "" : " (did you mean '" + std::string(near) + "'?)";
}

}  // namespace tenon
