// SPDX-License-Identifier: Apache-2.0
#include "joint_passes.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tenon/sdk/listing.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

constexpr const char *kBudget = "budget", *kPeak = "planned_peak_before";
constexpr double kAll = 1, kLeast = 0;  // as budgets: nothing is computed again; all that helps

// Of all bytes, 1 at most; 0: none is given.
double share_of(const PassChoice& pass) {
  const json options = json::parse(pass.options);
  const json budget = options.value(kBudget, json(0));
  const double share = budget.is_number() ? budget.get<double>() : 0;
  return share > 0 && share <= 1 ? share : 0;
}

PassChoice with_budget(const PassChoice& pass, double budget) {
  json options = json::parse(pass.options);
  options[kBudget] = budget;
  return {pass.id, options.dump()};
}

// Puts this budget in place of shares; false: there are none.
bool set_shares(Recipe& recipe, const std::vector<PassChoice>& given, double budget) {
  recipe.joint = given;
  bool has_any = false;
  for (PassChoice& pass : recipe.joint) {
    if (share_of(pass) == 0) continue;
    pass = with_budget(pass, budget);
    has_any = true;
  }
  return has_any;
}

}  // namespace

PassChoice for_plan(const Recipe& recipe, const PassChoice& pass) {
  const json::json_pointer known("/schema/properties/precision/enum");
  json options = json::parse(pass.options);
  for (const json& one : listed_components(recipe.ctx, "tenon.pass/1")) {
    if (one.value("id", "") != pass.id || !one.contains(known)) continue;
    const json& words = one[known];
    if (std::ranges::count(words, json(recipe.plan_precision)) > 0)
      options.emplace("precision", recipe.plan_precision);
  }
  return {pass.id, options.dump()};
}

Status set_joint(Recipe& recipe,
                 const std::vector<PassChoice>& given,
                 StepSizes sizes,
                 const Cancel& cancel) {
  if (!set_shares(recipe, given, kAll)) return {};
  TN_TRY(step, make_step(recipe, sizes, cancel));
  for (size_t i = 0; i < given.size(); ++i) {
    const double share = share_of(given[i]);
    if (share == 0) continue;
    const json report = json::parse(step.joint_reports[i], nullptr, false);
    recipe.joint[i] = report.is_object() && report.contains(kPeak)
                          ? with_budget(given[i], share * report[kPeak].get<double>())
                          : given[i];
  }
  return {};
}

bool set_least_budgets(Recipe& recipe, const std::vector<PassChoice>& given) {
  return set_shares(recipe, given, kLeast);
}

}  // namespace tenon::trainer
