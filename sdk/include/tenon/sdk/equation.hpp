// SPDX-License-Identifier: Apache-2.0
#pragma once
// The equation of an Einsum as labels by axis; "..." gets labels of its own, aligned at the right.
// Which attribute of a node holds one is said by the family `equation` of its row's coupling.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/status.hpp"

namespace tenon {

struct Equation {
  using Labels = std::vector<int>;
  static constexpr int kEllipsis = 256;  // this one and up: what "..." stands for, from the right

  std::vector<Labels> inputs;
  Labels output;
};

// ranks: of the operands.
Result<Equation> parse_equation(std::string_view text, const std::vector<size_t>& ranks);

// ---- definitions

namespace detail {

inline Status bad_equation(std::string_view text, std::string_view why) {
  return invalid(cat("equation '", text, "': ", why));
}

// One operand's labels. rank: of the tensor, or nothing for the output, which takes all of
// `widest`.
inline Result<Equation::Labels> operand_labels(std::string_view equation,
                                               std::string_view term,
                                               std::optional<size_t> rank,
                                               int& widest) {
  Equation::Labels out;
  size_t letters = 0;
  for (char c : term)
    letters += c != '.';
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    char c = term[i];
    if (c == '.') {
      if (seen || term.substr(i, 3) != "...")
        return bad_equation(equation, "expected '...' once in an operand");
      seen = true;
      i += 2;
      if (rank && *rank < letters) break;
      int n = rank ? static_cast<int>(*rank - letters) : widest;
      widest = std::max(widest, n);
      for (int k = n; k-- > 0;)
        out.push_back(Equation::kEllipsis + k);
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      out.push_back(c);
    } else {
      return bad_equation(equation, cat("expected letters, ',', '...' and '->', got '", c, "'"));
    }
  }
  if (rank && out.size() != *rank)
    return bad_equation(equation, cat("expected a tensor of rank ", out.size(), " for '", term,
                                      "', got rank ", *rank));
  return out;
}

}  // namespace detail

inline Result<Equation> parse_equation(std::string_view given, const std::vector<size_t>& ranks) {
  std::string text(given);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  std::vector<std::string> terms{""};
  for (char c : left) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != ranks.size())
    return detail::bad_equation(given,
                                cat("expected ", ranks.size(), " operands, got ", terms.size()));
  Equation out;
  int widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    TN_TRY(labels, detail::operand_labels(given, terms[i], ranks[i], widest));
    out.inputs.push_back(labels);
  }
  if (arrow != text.npos) {
    TN_TRY(labels,
           detail::operand_labels(given, std::string_view(text).substr(arrow + 2), {}, widest));
    out.output = labels;
  } else {  // "...", then what stands once, by the alphabet
    std::map<int, int> times;
    for (const Equation::Labels& labels : out.inputs)
      for (int label : labels)
        ++times[label];
    for (int k = widest; k-- > 0;)
      out.output.push_back(Equation::kEllipsis + k);
    for (auto [label, n] : times)
      if (n == 1 && label < Equation::kEllipsis) out.output.push_back(label);
  }
  std::set<int> known, used;
  for (const Equation::Labels& labels : out.inputs)
    known.insert(labels.begin(), labels.end());
  for (int label : out.output)
    if (!known.count(label) || !used.insert(label).second)
      return detail::bad_equation(given,
                                  "expected each label of the output once, and in some operand");
  return out;
}

}  // namespace tenon
