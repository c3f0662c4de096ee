// SPDX-License-Identifier: Apache-2.0
// tenon plugin list | info ID | doctor | check FILE | new NAME
#include "../module/table_text.hpp"
#include "commands.hpp"

namespace tenon::command {
namespace {

using Report = tn_status* (*)(tenon_session*, const tn_sink*);

Json report(const SessionPtr& session, Report make) {
  cxx::TextSink text;
  cxx::check(make(session->raw(), text.get()));
  return Json::parse(text.text());
}

void list(const SessionPtr& session, bool json) {
  Json plugins = report(session, tenon_plugin_list);
  if (json) return print_json(plugins);
  Json rows = Json::array();
  for (const Json& plugin : plugins) {
    for (const Json& component : plugin["components"]) {
      rows.push_back({{"plugin", plugin["id"]},
                      {"component", component["id"]},
                      {"role", component["role"]},
                      {"summary", component["summary"]}});
    }
    if (plugin["components"].empty() || !plugin["usable"].get<bool>())
      rows.push_back({{"plugin", plugin["id"]}, {"summary", plugin["why"]}});
  }
  print(rows.empty() ? "no plugin was found (see tenon plugin doctor)\n"
                     : lua::table_text(rows, {"plugin", "component", "role", "summary"}));
}

std::string option_text(const std::string& name, const Json& option) {
  std::string text = cat("  ", name, "  ", cxx::dump(option.value("type", Json("any"))));
  if (option.contains("enum")) text += cat(" of ", cxx::dump(option["enum"]));
  if (option.contains("default")) text += cat(", default ", cxx::dump(option["default"]));
  std::string why = option.value("description", "");
  return text + (why.empty() ? "" : "  " + why) + "\n";
}

void info(const SessionPtr& session, const std::string& id, bool json) {
  Json found = Json::array();
  std::string known;
  for (const Json& component : cxx::list_components(*session, "")) {
    if (component["id"] == id || component["plugin"] == id) found.push_back(component);
    known += cat(known.empty() ? "" : ", ", component["id"].get<std::string>());
  }
  if (found.empty())
    throw Error(TN_NOT_FOUND,
                cat("plugin info: expected one of ",
                    known.empty() ? "(no plugin was found)" : known, ", got '", id, "'"));
  if (json) return print_json(found);
  for (const Json& component : found) {
    std::string text = cat(
        component["id"].get<std::string>(), " ", component["version"].get<std::string>(), "  (",
        component["role"].get<std::string>(), ", plugin ", component["plugin"].get<std::string>(),
        ")\n  ", component["summary"].get<std::string>(), "\n");
    const Json& schema = component["schema"];
    if (schema.is_object() && schema.contains("properties")) {
      for (const auto& [name, option] : schema["properties"].items())
        text += option_text(name, option);
    }
    print(text);
  }
}

void doctor(const SessionPtr& session, bool json) {
  Json report_of_places = report(session, tenon_plugin_doctor);
  if (json) return print_json(report_of_places);
  for (const Json& place : report_of_places["places"]) {
    std::string why = place["why"];
    print(cat(place["folder"].get<std::string>(), "  (", place["source"].get<std::string>(), ")",
              why.empty() ? "" : cat(": not searched: ", why), "\n"));
    for (const Json& file : place["files"]) {
      std::string trouble = file["why"];
      print(cat("  ", file["file"].get<std::string>(), "  ",
                trouble.empty() ? "ok" : cat("not used: ", trouble), "\n"));
    }
  }
  for (const Json& backend : report_of_places["backends"]) {
    for (const Json& device : backend["devices"]) {
      std::string trouble = device.value("why", "");
      print(cat("backend ", backend["id"].get<std::string>(), ": ",
                trouble.empty() ? device.value("name", "a device") : cat("no device: ", trouble),
                "\n"));
    }
  }
}

}  // namespace

void declare_plugin(CLI::App& app, Tool& tool) {
  struct Flags {
    std::string id;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();
  app.require_subcommand(1);
  CLI::App* of_list = app.add_subcommand("list", "all components; runs no plugin code");
  CLI::App* of_info = app.add_subcommand("info", "one component or plugin, with its options");
  CLI::App* of_doctor =
      app.add_subcommand("doctor", "every place and file, and why one is not used");
  declare_plugin_check(*app.add_subcommand("check", "try out what the roles of a plugin promise"),
                       tool);
  declare_plugin_new(*app.add_subcommand("new", "write a plugin to start from"), tool);
  of_info->add_option("id", flags->id, "a component or plugin")->required()->type_name("ID");
  for (CLI::App* one : {of_list, of_info, of_doctor})
    flags->json.add(one);
  of_list->callback(
      [flags, &tool] { tool.action = [flags, &tool] { list(tool.open(), flags->json.json); }; });
  of_info->callback([flags, &tool] {
    tool.action = [flags, &tool] { info(tool.open(), flags->id, flags->json.json); };
  });
  of_doctor->callback(
      [flags, &tool] { tool.action = [flags, &tool] { doctor(tool.open(), flags->json.json); }; });
}

}  // namespace tenon::command
