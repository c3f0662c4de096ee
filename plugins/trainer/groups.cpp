// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

#include <nlohmann/json.hpp>

#include "tenon/sdk/pattern.hpp"

#include "parameters.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

Result<std::vector<std::string>> patterns_of(const json& group) {
  json given = group.value("parameters", json());
  if (given.is_string()) given = json::array({given});
  bool good = given.is_array() && !given.empty();
  for (const json& one : good ? given : json::array())
    good = good && one.is_string();
  if (!good)
    return invalid(
        cat("parameters: expected a pattern of names or a list of them, got ", given.dump()));
  return given.get<std::vector<std::string>>();
}

Result<Group> read_group(tn_ctx* ctx, const json& given, const Component& main) {
  if (!given.is_object()) return invalid(cat("expected an object, got ", given.dump()));
  for (const auto& [key, value] : given.items())
    if (key != "parameters" && key != "rate" && key != "optimizer" && key != "options")
      return invalid(cat("expected parameters, rate, optimizer, options, got '", key, "'"));
  Group out;
  TN_TRY(patterns, patterns_of(given));
  out.parameters = patterns;
  json rate = given.value("rate", json(1));
  if (!rate.is_number() || !(rate.get<double>() >= 0))
    return invalid(cat("rate: expected a factor of at least 0, got ", rate.dump()));
  out.rate = rate;
  if (!given.contains("optimizer") && !given.contains("options")) return out;
  json id = given.value("optimizer", json(main.id())),
       options = given.value("options", json::object());
  if (!id.is_string() || !options.is_object())
    return invalid("expected an optimizer's id and its options as an object");
  TN_TRY(made, Component::create(ctx, "tenon.optimizer/1", id.get<std::string>(), options.dump()));
  out.optimizer = std::move(made);
  return out;
}

}  // namespace

Result<std::vector<Group>> read_groups(tn_ctx* ctx,
                                       const std::string& text,
                                       const Component& main) {
  std::vector<Group> out;
  if (text.empty()) return out;
  json given = json::parse(text, nullptr, false);
  for (const auto& [name, one] : given.items()) {
    Result<Group> group = read_group(ctx, one, main);
    if (!group.ok()) return std::move(group).status().in(cat("option groups: ", name));
    group->name = name;
    out.push_back(std::move(*group));
  }
  return out;
}

Result<std::vector<std::vector<size_t>>> distribute(const std::vector<Group>& groups,
                                                    const std::vector<Parameter>& parameters) {
  std::vector<std::vector<size_t>> out(groups.size() + 1);
  for (size_t i = 0; i < parameters.size(); ++i) {
    size_t in = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      if (matched_by(groups[g].parameters, parameters[i].name).empty()) continue;
      if (in > 0)
        return invalid(cat("option groups: parameter ", parameters[i].name, " is in ",
                           groups[in - 1].name, " and in ", groups[g].name));
      in = g + 1;
    }
    out[in].push_back(i);
  }
  std::vector<std::string_view> names;
  for (const Parameter& parameter : parameters)
    names.push_back(parameter.name);
  for (size_t g = 0; g < groups.size(); ++g)
    if (out[g + 1].empty())
      return invalid(cat("option groups: ", groups[g].name, ": no parameter fits '",
                         groups[g].parameters.front(), "' (they are ", few_of(names), ")"));
  return out;
}

}  // namespace tenon::trainer
