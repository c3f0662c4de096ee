// SPDX-License-Identifier: Apache-2.0
#pragma once
// Line differences in unified form. Patience diff: lines that occur once on each side anchor the
// match (their longest increasing sequence), and the rest is matched between anchors; what has no
// anchor left is removed and added whole. Near-linear also for texts with nothing in common.

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/cat.hpp"

namespace tenon::cxx {
namespace detail {

using Lines = std::vector<std::string_view>;

inline Lines split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct DiffStep {
  char mark;  // ' ', '-', '+'
  size_t a, b;
};

class Differ {
 public:
  Differ(const Lines& a, const Lines& b) : a_(a), b_(b) {}

  std::vector<DiffStep> run() {
    match(0, a_.size(), 0, b_.size());
    return std::move(steps_);
  }

 private:
  using Anchor = std::pair<size_t, size_t>;

  void match(size_t a0, size_t a1, size_t b0, size_t b1) {
    for (; a0 < a1 && b0 < b1 && a_[a0] == b_[b0]; ++a0, ++b0)
      steps_.push_back({' ', a0, b0});
    size_t tail = 0;
    while (a1 - tail > a0 && b1 - tail > b0 && a_[a1 - tail - 1] == b_[b1 - tail - 1])
      ++tail;
    a1 -= tail;
    b1 -= tail;
    std::vector<Anchor> anchors = anchors_of(a0, a1, b0, b1);
    if (anchors.empty()) {
      for (size_t i = a0; i < a1; ++i)
        steps_.push_back({'-', i, b0});
      for (size_t j = b0; j < b1; ++j)
        steps_.push_back({'+', a1, j});
    } else {
      for (auto [i, j] : anchors) {
        match(a0, i, b0, j);
        steps_.push_back({' ', i, j});
        a0 = i + 1;
        b0 = j + 1;
      }
      match(a0, a1, b0, b1);
    }
    for (size_t k = 0; k < tail; ++k)
      steps_.push_back({' ', a1 + k, b1 + k});
  }

  std::vector<Anchor> anchors_of(size_t a0, size_t a1, size_t b0, size_t b1) const {
    struct Seen {
      size_t in_a = 0, in_b = 0, at_b = 0;
    };
    std::unordered_map<std::string_view, Seen> seen;
    for (size_t i = a0; i < a1; ++i)
      ++seen[a_[i]].in_a;
    for (size_t j = b0; j < b1; ++j) {
      Seen& line = seen[b_[j]];
      ++line.in_b;
      line.at_b = j;
    }
    std::vector<Anchor> common;
    for (size_t i = a0; i < a1; ++i) {
      const Seen& line = seen[a_[i]];
      if (line.in_a == 1 && line.in_b == 1) common.emplace_back(i, line.at_b);
    }
    return increasing(common);
  }

  // The longest sequence that increases on both sides, by patience sorting.
  static std::vector<Anchor> increasing(const std::vector<Anchor>& all) {
    std::vector<size_t> tops;
    std::vector<size_t> before(all.size(), all.size());
    for (size_t k = 0; k < all.size(); ++k) {
      auto pile = std::lower_bound(tops.begin(), tops.end(), all[k].second,
                                   [&](size_t top, size_t b) { return all[top].second < b; });
      if (pile != tops.begin()) before[k] = *std::prev(pile);
      if (pile == tops.end()) {
        tops.push_back(k);
      } else {
        *pile = k;
      }
    }
    std::vector<Anchor> out;
    for (size_t k = tops.empty() ? all.size() : tops.back(); k < all.size(); k = before[k])
      out.push_back(all[k]);
    std::reverse(out.begin(), out.end());
    return out;
  }

  const Lines& a_;
  const Lines& b_;
  std::vector<DiffStep> steps_;
};

}  // namespace detail

// In unified form; empty when the texts are equal.
inline std::string diff_lines(std::string_view before, std::string_view after) {
  if (before == after) return {};
  constexpr size_t kContext = 3;
  const detail::Lines a = detail::split(before), b = detail::split(after);
  const std::vector<detail::DiffStep> steps = detail::Differ(a, b).run();
  std::string out = "--- before\n+++ after\n";
  for (size_t i = 0; i < steps.size();) {
    if (steps[i].mark == ' ') {
      ++i;
      continue;
    }
    size_t begin = i - std::min(i, kContext);
    size_t last = i;
    for (size_t k = i; k < steps.size() && k <= last + 2 * kContext; ++k)
      if (steps[k].mark != ' ') last = k;
    size_t end = std::min(last + kContext + 1, steps.size());
    size_t n_a = 0;
    size_t n_b = 0;
    std::string hunk;
    for (size_t k = begin; k < end; ++k) {
      n_a += steps[k].mark != '+';
      n_b += steps[k].mark != '-';
      hunk += steps[k].mark;
      hunk += steps[k].mark == '+' ? b[steps[k].b] : a[steps[k].a];
      hunk += '\n';
    }
    out += cat("@@ -", steps[begin].a + (n_a > 0), ",", n_a, " +", steps[begin].b + (n_b > 0), ",",
               n_b, " @@\n", hunk);
    i = end;
  }
  return out;
}

}  // namespace tenon::cxx
