// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random damage to a text, for tests that a parser survives anything. Fixed seeds only.

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::tests {

inline std::string mutated(const std::vector<std::string>& corpus,
                           std::string_view alphabet,
                           std::mt19937& random) {
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  std::string text = corpus[below(corpus.size())];
  for (size_t edits = 1 + below(4); edits > 0; --edits) {
    const size_t at = below(text.size() + 1);
    const size_t length = std::min(text.size() - at, 1 + below(6));
    switch (below(4)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, 1, alphabet[below(alphabet.size())]);
        break;
      case 2:
        text.insert(at, std::string(text, at, length));
        break;
      default: {
        const std::string& other = corpus[below(corpus.size())];
        text.insert(at, other, below(other.size()), 1 + below(12));
      }
    }
  }
  return text;
}

}  // namespace tenon::tests
