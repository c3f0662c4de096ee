// SPDX-License-Identifier: Apache-2.0
#include "pattern.hpp"

namespace tenon::pruner {

bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;  // let the star take one character more
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

std::string matched_by(const std::vector<std::string>& patterns, Node node) {
  std::string path = cat(node.scope(), "/", node.name());
  for (const std::string& pattern : patterns)
    if (matches(pattern, node.name()) || matches(pattern, node.type()) ||
        matches(pattern, node.scope()) || matches(pattern, path))
      return pattern;
  return "";
}

}  // namespace tenon::pruner
