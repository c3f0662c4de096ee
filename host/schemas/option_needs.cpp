// SPDX-License-Identifier: Apache-2.0
#include "schemas/option_needs.hpp"

#include <algorithm>

namespace tenon::host {
namespace {

// {"rank": ["energy"]} or a list of such objects, of which one has to hold.
Json alternatives_of(const Json& option) {
  const Json needs = option.value("needs", Json::array());
  return needs.is_array() ? needs : Json::array({needs});
}

bool holds(const std::string& name,
           const Json& wanted,
           const Json& properties,
           const tn_options& all) {
  if (wanted.is_string()) return (wanted == "given") == is_said(name, properties, all);
  const Any* value = all.find(name);
  return value && std::any_of(wanted.begin(), wanted.end(),
                              [value](const Json& item) { return is_json(value->get(), item); });
}

// "bits = 4", "data", "no weight_bits"
std::string text_of(const std::string& name, const Json& wanted) {
  if (wanted.is_string()) return wanted == "given" ? name : "no " + name;
  std::string values;
  for (const Json& item : wanted)
    values += cat(values.empty() ? "" : " or ", any_text(any_of_json(item).get()));
  return cat(name, " = ", values);
}

}  // namespace

std::string needs_fault(const Json& option, const Json& properties) {
  for (const Json& one : alternatives_of(option)) {
    if (!one.is_object() || one.empty()) return "needs: expected an object";
    for (const auto& [name, wanted] : one.items()) {
      if (!properties.contains(name)) return cat("needs: unknown option ", name);
      const bool is_word = wanted == "given" || wanted == "absent";
      if (!is_word && !(wanted.is_array() && !wanted.empty()))
        return cat("needs: ", name, R"(: expected a list of values, "given" or "absent")");
    }
  }
  return "";
}

bool is_said(const std::string& name, const Json& properties, const tn_options& all) {
  const Any* value = all.find(name);
  return value && !is_json(value->get(), properties[name].value("default", Json()));
}

std::string why_no_effect(const std::string& option,
                          const Json& properties,
                          const tn_options& all) {
  std::string expected, got;
  for (const Json& one : alternatives_of(properties[option])) {
    std::string together;
    bool is_met = true;
    for (const auto& [name, wanted] : one.items()) {
      const Any* value = all.find(name);
      together += cat(together.empty() ? "" : " and ", text_of(name, wanted));
      if (holds(name, wanted, properties, all)) continue;
      is_met = false;
      const std::string is = value ? cat(name, " = ", any_text(value->get())) : cat("no ", name);
      if (got.find(is) == std::string::npos) got += cat(got.empty() ? "" : ", ", is);
    }
    if (is_met) return "";
    expected += cat(expected.empty() ? "" : ", or ", together);
  }
  if (expected.empty()) return "";
  return cat("expected ", expected, " beside it, as it has no effect otherwise, got ", got);
}

}  // namespace tenon::host
