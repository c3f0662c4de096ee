// SPDX-License-Identifier: Apache-2.0
// "trainer.driven": live schedules by the names of the numbers that they drive, as one component.
#include "driven.hpp"

#include <set>

#include "tenon/sdk/recognized.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

bool take_number(const json& value, auto& to, double least, double most) {
  if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most))
    return false;
  to = value.get<std::decay_t<decltype(to)>>();
  return true;
}

Result<Follow> follow_of(const json& given) {
  Follow out;
  if (!given.is_object()) return invalid(cat("follow: expected an object, got ", given.dump()));
  for (const auto& [key, value] : given.items()) {
    bool is_value = key == "value", is_end = key == "begin" || key == "end";
    if (!is_value && !is_end)
      return invalid(cat("follow: expected value, begin, end, got '", key, "'"));
    if (is_value ? !value.is_string() : !value.is_number())
      return invalid(cat("follow: ", key, ": expected ",
                         is_value ? "the name of a measured value" : "a number", ", got ",
                         value.dump()));
    if (is_value)
      out.value = value;
    else
      (key == "begin" ? out.begin : out.end) = value;
  }
  for (const char* key : {"value", "begin", "end"})
    if (!given.contains(key)) return invalid(cat("follow: expected ", key, ", got none"));
  if (out.begin == out.end)
    return invalid(
        cat("follow: expected two values begin and end, got ", given["end"].dump(), " for both"));
  return out;
}

// plateau and follow.
Status read_rules(const json& rules, bool validates, Driven& out) {
  if (rules.contains("plateau")) {
    Result<Plateau> plateau = plateau_of(rules["plateau"], validates);
    if (!plateau.ok()) return std::move(plateau).status().in("plateau");
    out.plateau = *plateau;
  }
  if (rules.contains("follow")) {
    TN_TRY(follow, follow_of(rules["follow"]));
    out.follow = follow;
  }
  return {};
}

// {"weight_decay": {"schedule": "cosine", "base": 0.1, ...}}
Result<std::vector<Driven>> from_json(tn_ctx* ctx, std::string_view text, bool validates) {
  std::vector<Driven> out;
  json given = json::parse(text, nullptr, false);
  if (!given.is_object())
    return invalid(cat("expected schedules by name or a trainer.driven, got '", text, "'"));
  for (auto& [name, one] : given.items()) {
    if (!one.is_object() || !one.contains("schedule") || !one["schedule"].is_string())
      return invalid(cat(name, ": expected an object with schedule, the id of one, and its ",
                         "options, got ", one.dump()));
    Driven made;
    made.name = name;
    TN_CHECK(read_rules(one, validates, made).in(name));
    std::string id = one["schedule"];
    if (id.find('.') == std::string::npos) id = cat("scheduler.", id);
    for (const char* own : {"schedule", "plateau", "follow"})
      one.erase(own);
    Result<Component> schedule = Component::create(ctx, kSchedule, id, one.dump());
    if (!schedule.ok()) return std::move(schedule).status().in(name);
    made.schedule = std::move(*schedule);
    out.push_back(std::move(made));
  }
  return out;
}

// A schedule of a script is known by its values alone.
json sample_of(const Component& schedule) {
  json out = schedule.id();
  for (uint64_t step : {0, 1, 500, 999}) {
    Result<double> value = value_at(schedule, step, 1000);
    out = cat(out.get<std::string>(), " ", value.ok() ? json(*value).dump() : "?");
  }
  return out;
}

Result<std::vector<Driven>> from_list(const Component& given, bool validates, std::string* text) {
  std::vector<Driven> out;
  std::set<std::string> names;
  json described = json::object();
  for (const Component* at = &given; *at;) {
    const auto* list = own_object<DrivenList>(*at);
    if (!list) return invalid(cat("expected schedules by name (trainer.driven), got ", at->id()));
    if (!names.insert(list->name).second)
      return invalid(cat("expected one schedule for ", list->name, ", got two"));
    Driven made;
    made.name = list->name;
    json rules = list->rules.empty() ? json::object() : json::parse(list->rules, nullptr, false);
    TN_CHECK(read_rules(rules, validates, made).in(list->name));
    TN_TRY(schedule, Component::share(list->schedule.raw(), kSchedule));
    made.schedule = std::move(schedule);
    described[list->name] = {rules, sample_of(made.schedule)};
    out.push_back(std::move(made));
    at = &list->next;
  }
  *text = described.dump();
  return out;
}

}  // namespace

Result<double> value_at(const Component& schedule, uint64_t step, uint64_t total_steps) {
  double out = 0;
  TN_CHECK(Status(schedule.table<tn_schedule>()->value(schedule.self(), step, total_steps, &out)));
  if (std::isfinite(out)) return out;
  return Status(TN_OUT_OF_RANGE, cat("schedule ", schedule.id(), ": step ", step + 1,
                                     ": expected a finite number, got ", out));
}

Result<double> Driven::value(uint64_t step, uint64_t total_steps, const Measured& seen) const {
  TN_TRY(scheduled, follow ? value_at(schedule, Follow::step(seen.share), Follow::kSteps)
                           : value_at(schedule, step, total_steps));
  return plateau ? plateau->rate(scheduled, seen.plateau) : scheduled;
}

Result<Plateau> plateau_of(const json& given, bool validates) {
  if (!given.is_object()) return invalid(cat("expected an object, got ", given.dump()));
  Plateau made;
  std::string of = validates ? "validation" : "loss";
  constexpr double kMany = 1e15;
  for (const auto& [key, value] : given.items()) {
    bool good = false;
    if (key == "factor")
      good = take_number(value, made.factor, 0, kMany) && made.factor != 1;
    else if (key == "patience")
      good = take_number(value, made.patience, 0, kMany);
    else if (key == "threshold")
      good = take_number(value, made.threshold, 0, 1);
    else if (key == "cooldown")
      good = take_number(value, made.cooldown, 0, kMany);
    else if (key == "lowest")
      good = take_number(value, made.lowest, 0, kMany);
    else if (key == "of")
      good = value == "validation" || value == "loss";
    else
      return invalid(
          cat("expected factor, patience, threshold, cooldown, lowest, of, got '", key, "'"));
    if (!good)
      return invalid(cat(key, ": expected ",
                         key == "of"       ? "validation or loss"
                         : key == "factor" ? "a number of at least 0, and not 1"
                                           : "a number of at least 0",
                         ", got ", value.dump()));
    if (key == "of") of = value;
  }
  if (of == "validation" && !validates) return invalid("of: expected option validation with it");
  made.by_training = of == "loss";
  return made;
}

Result<std::vector<Driven>> driven_option(tn_ctx* ctx,
                                          const Options& options,
                                          bool validates,
                                          std::string* text) {
  if (options.get("schedules").tag == TN_ANY_COMPONENT) {
    TN_TRY(given, component_option(ctx, options, "schedules", kSchedule));
    Result<std::vector<Driven>> made = from_list(given, validates, text);
    if (!made.ok()) return std::move(made).status().in("option schedules");
    return made;
  }
  *text = options.text("schedules");
  if (text->empty()) return std::vector<Driven>();
  Result<std::vector<Driven>> made = from_json(ctx, *text, validates);
  if (!made.ok()) return std::move(made).status().in("option schedules");
  return made;
}

Result<DrivenList> DrivenList::create(tn_ctx* ctx, const Options& options) {
  TN_TRY(schedule, component_option(ctx, options, "schedule", kSchedule));
  TN_TRY(next, component_option(ctx, options, "next", kSchedule));
  return DrivenList{options.text("name"), options.text("rules"), std::move(schedule),
                    std::move(next)};
}

}  // namespace tenon::trainer

TENON_COMPONENT_(driven,
                 tenon::Recognized<tenon::ScheduleRole<tenon::trainer::DrivenList>>,
                 "tenon.schedule/1",
                 "trainer.driven",
                 "schedules by the names of the numbers that they drive, one behind the other",
                 R"({
  "required": ["name", "schedule"],
  "properties": {
    "name": {"type": "string", "description": "the number that is driven: an option of loss or optimizer, a scalar constant of the model, dropout, learning_rate"},
    "schedule": {"type": "component", "role": "tenon.schedule/1", "description": "what drives it"},
    "rules": {"type": "object", "description": "plateau: as the option of trainer.train; follow: value, begin and end, a measured value whose way from begin to end is the schedule's time"},
    "next": {"type": "component", "role": "tenon.schedule/1", "description": "the next of them, a trainer.driven"}}})",
                 TN_COMP_REENTRANT | TN_COMP_DETERMINISTIC)
