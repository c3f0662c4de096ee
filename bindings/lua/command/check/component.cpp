// SPDX-License-Identifier: Apache-2.0
// What every component promises, whatever its role.
#include "check.hpp"

namespace tenon::command::check {
namespace {

Json balance(const Subject& subject) {
  cxx::TextSink text;
  cxx::check(tenon_plugin_balance(subject.session->raw(), text.get()));
  return Json::parse(text.text());
}

// Many at once, ended in another order than they were made.
void recreate(const Subject& subject) {
  subject.make();
  Json before = balance(subject);
  for (int round = 0; round < 20; ++round) {
    std::vector<cxx::Component> alive;
    for (int i = 0; i < 8; ++i)
      alive.push_back(subject.make());
    while (!alive.empty())
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(alive.size() / 2));
  }
  Json after = balance(subject);
  require(after == before, cat("160 were made and ended: expected nothing to be held, got ",
                               cxx::dump(after), " after ", cxx::dump(before)));
}

void interfaces(const Subject& subject) {
  cxx::Component made = subject.make();
  void* self = nullptr;
  auto get = subject.session->component->get_interface;
  const void* table = get(made.raw(), cxx::str(subject.role), &self);
  require(table != nullptr, cat("expected a table for its role ", subject.role, ", got none"));
  require(get(made.raw(), cxx::str("com.example.nothing/9"), &self) == nullptr,
          "expected no table for an interface that does not exist, got one");
  std::string longer = subject.role + "0";
  require(get(made.raw(), cxx::str(longer), &self) == nullptr,
          cat("expected no table for ", longer, ", got one"));
}

// A value of a type that the option does not have.
Json wrong_value(const Json& type) {
  if (type.is_array()) return nullptr;
  if (type == "number" || type == "integer" || type == "boolean") return "a text";
  if (type == "string" || type == "path" || type == "array") return true;
  return nullptr;
}

void options(const Subject& subject) {
  if (!subject.schema.contains("properties")) return;
  for (const auto& [name, option] : subject.schema["properties"].items()) {
    require(!option.value("description", "").empty(),
            cat("option ", name, ": expected a description, got none"));
    Json wrong = wrong_value(option.value("type", Json()));
    if (wrong.is_null()) continue;
    Json given = subject.options;
    given[name] = wrong;
    try {
      subject.make(given);
    } catch (const cxx::Error& refused) {
      require(std::string(refused.what()).find(name) != std::string::npos,
              cat("option ", name, ": a wrong type was refused without naming it"));
      continue;
    }
    broken(cat("option ", name, ": expected a ", cxx::dump(wrong), " to be refused, it was taken"));
  }
}

// A value that its type allows, or nearly: far out, empty, long.
Json odd_value(const Json& option, std::mt19937_64& random) {
  Json type = option.value("type", Json());
  if (type.is_array()) type = type[random() % type.size()];
  auto pick = [&](std::vector<Json> all) { return all[random() % all.size()]; };
  if (random() % 8 == 0) return pick({nullptr, true, -1, "", Json::array(), Json::object()});
  if (option.contains("enum")) return option["enum"][random() % option["enum"].size()];
  if (type == "integer")
    return pick({0, 1, -1, 2, 7, 1000, INT64_MAX, INT64_MIN, INT32_MAX, 0.5, 1e300});
  if (type == "number") return pick({0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, -1e300, 3});
  if (type == "boolean") return random() % 2 == 0;
  if (type == "array") {
    Json out = Json::array();
    for (size_t n = random() % 4; n > 0; --n)
      out.push_back(odd_value(option.value("items", Json::object()), random));
    return out;
  }
  return pick({"", "a", "no such thing", std::string(5000, 'x'), "\xc3\xa9", "../..", "a=b,c"});
}

// Options at random: each set is taken, or refused with a reason.
void odd_options(const Subject& subject) {
  if (!subject.schema.contains("properties")) throw Skipped{"it has no options"};
  std::mt19937_64 random(subject.seed + 1);
  for (int round = 0; round < 200; ++round) {
    Json given = subject.options;
    for (const auto& [name, option] : subject.schema["properties"].items())
      if (random() % 2 == 0) given[name] = odd_value(option, random);
    try {
      subject.make(given);
    } catch (const cxx::Error& refused) {
      require(*refused.what() != 0,
              cat("options ", cxx::dump(given), ": refused without a reason"));
    }
  }
}

}  // namespace

void check_component(Subject& subject, Report& report) {
  report.check("create", [&] { subject.make(); });
  report.check("interfaces", [&] { interfaces(subject); });
  report.check("options", [&] { options(subject); });
  report.check("odd options", [&] { odd_options(subject); });
  report.check("recreate", [&] { recreate(subject); });
}

}  // namespace tenon::command::check
