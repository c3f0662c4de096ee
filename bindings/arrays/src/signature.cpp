// SPDX-License-Identifier: Apache-2.0
// Signatures of functions, and the description that other languages make their functions from.
#include <algorithm>

#include "call.hpp"

namespace tenon::arrays {
namespace {

std::string trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(at), text.size());
    if (std::string part = trimmed(text.substr(0, end)); !part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Parameter parse_parameter(std::string_view text) {
  Parameter made;
  if (size_t at = text.find('='); at != std::string_view::npos) {
    std::string value = trimmed(text.substr(at + 1));
    made.fallback = value == "none" ? Json() : Json::parse(value);
    text = text.substr(0, at);
  }
  if (text.starts_with('*')) {
    made.variadic = true;
    text.remove_prefix(1);
  }
  size_t colon = std::min(text.find(':'), text.size());
  made.name = trimmed(text.substr(0, colon));
  made.words = split(text.substr(std::min(colon + 1, text.size())), ' ');
  return made;
}

constexpr std::string_view kStatic[] = {"int",    "ints",  "axes",  "flag",
                                        "scalar", "plain", "dtype", "text"};

Json described(const Parameter& parameter) {
  Json kind = parameter.is_array() ? Json(parameter.has("arrays") ? "arrays" : "array")
                                   : Json(parameter.words.front());
  Json out = {{"name", parameter.name}, {"kind", kind}};
  if (parameter.fallback) out["default"] = *parameter.fallback;
  if (parameter.variadic) out["variadic"] = true;
  return out;
}

Json make_description() {
  Json all = Json::array();
  for (const Group& group : groups()) {
    for (const Function& row : group.functions) {
      Signature signature = parse_signature(row.signature);
      Json parameters = Json::array();
      for (const Parameter& parameter : signature.parameters)
        parameters.push_back(described(parameter));
      all.push_back({{"name", signature.name},
                     {"group", group.name},
                     {"doc", row.doc},
                     {"parameters", parameters},
                     {"results", signature.results}});
    }
  }
  return all;
}

}  // namespace

bool Parameter::has(std::string_view word) const {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool Parameter::is_array() const {
  return std::none_of(std::begin(kStatic), std::end(kStatic), [&](auto word) { return has(word); });
}

Signature parse_signature(std::string_view text) {
  Signature made;
  size_t open = text.find('(');
  size_t close = text.rfind(')');
  made.name = text.substr(0, open);
  // No default has a comma in it.
  for (const std::string& part : split(text.substr(open + 1, close - open - 1), ','))
    made.parameters.push_back(parse_parameter(part));
  std::vector<std::string> results;
  if (size_t arrow = text.find("->", close); arrow != std::string_view::npos)
    results = split(text.substr(arrow + 2), ',');
  bool is_plain = results == std::vector<std::string>{"tuple"};
  made.results = results.empty() ? Json(false) : is_plain ? Json(true) : Json(results);
  return made;
}

const Json& description() {
  static const Json made = make_description();
  return made;
}

std::span<const Group> groups() {
  static const Group kGroups[] = {
      {"elementwise", kElementwise}, {"arithmetic", kArithmetic}, {"reductions", kReductions},
      {"shapes", kShapes},           {"creation", kCreation},     {"products", kProducts},
      {"sorting", kSorting},         {"special", kSpecial},       {"statistics", kStatistics},
      {"networks", kNetworks},       {"linalg", kLinalg},         {"fft", kFft},
  };
  return kGroups;
}

}  // namespace tenon::arrays
