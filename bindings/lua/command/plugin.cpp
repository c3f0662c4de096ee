// SPDX-License-Identifier: Apache-2.0
// tenon plugin list | info ID | doctor | forgive ID | check FILE | new NAME
#include <algorithm>
#include <filesystem>

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

// "a, b": the texts of a list, or one text alone.
std::string joined(const Json& texts, std::string_view between) {
  if (!texts.is_array()) return texts.is_string() ? texts.get<std::string>() : cxx::dump(texts);
  std::string out;
  for (const Json& text : texts)
    out += cat(out.empty() ? "" : between, joined(text, between));
  return out;
}

// ", 0 <= x < 1", or nothing.
std::string range_text(const Json& option) {
  struct Bound {
    const char *key, *before, *after;
  };
  std::string low, high;
  for (const Bound& bound : {Bound{"minimum", "", " <= "}, Bound{"exclusiveMinimum", "", " < "}})
    if (option.contains(bound.key)) low = cxx::dump(option[bound.key]) + bound.after;
  for (const Bound& bound : {Bound{"maximum", " <= ", ""}, Bound{"exclusiveMaximum", " < ", ""}})
    if (option.contains(bound.key)) high = bound.before + cxx::dump(option[bound.key]);
  return low.empty() && high.empty() ? "" : cat(", ", low, "x", high);
}

std::string takes_text(const Json& option) {
  if (option.contains("enum")) return joined(option["enum"], ", ");
  std::string types = joined(option.value("type", Json("anything")), " or ");
  return types + range_text(option);
}

std::string options_text(const Json& schema) {
  Json rows = Json::array();
  const Json required = schema.value("required", Json::array());
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, option] : properties.items()) {
    bool is_required = std::find(required.begin(), required.end(), name) != required.end();
    std::string otherwise = option.contains("default") ? cxx::dump(option["default"])
                            : is_required              ? "required"
                                                       : "";
    rows.push_back({{"  option", "  " + name},
                    {"takes", takes_text(option)},
                    {"default", otherwise},
                    {"meaning", option.value("description", "")}});
  }
  if (rows.empty()) return "";
  return "\n" + lua::table_text(rows, {"  option", "takes", "default", "meaning"});
}

std::string component_text(const Json& one) {
  const Json& schema = one["schema"];
  return cat(joined(one["id"], ""), " ", joined(one["version"], ""), "  (", joined(one["role"], ""),
             ", plugin ", joined(one["plugin"], ""), ")\n  ", joined(one["summary"], ""), "\n",
             schema.is_object() ? options_text(schema) : "");
}

// What an id that is not there may have meant: a component of the plugin that it begins with, or
// a plugin.
std::string known_near(const Json& components, const std::string& id) {
  std::string plugin = id.substr(0, id.find('.'));
  Json same = Json::array(), plugins = Json::array();
  for (const Json& one : components) {
    if (one["plugin"] == plugin) same.push_back(one["id"]);
    if (plugins.empty() || plugins.back() != one["plugin"]) plugins.push_back(one["plugin"]);
  }
  if (!same.empty()) return cat("one of ", joined(same, ", "));
  if (plugins.empty()) return "a plugin, of which none was found (see tenon plugin doctor)";
  return cat("a component (see tenon plugin list) or one of the plugins ", joined(plugins, ", "));
}

void info(const SessionPtr& session, const std::string& id, bool json) {
  Json found = Json::array(), all = cxx::list_components(*session, "");
  for (const Json& component : all)
    if (component["id"] == id || component["plugin"] == id) found.push_back(component);
  if (found.empty())
    throw Error(TN_NOT_FOUND,
                cat("plugin info: expected ", known_near(all, id), ", got '", id, "'"));
  if (json) return print_json(found);
  for (const Json& component : found)
    print(cat(component == found.front() ? "" : "\n", component_text(component)));
}

// Forgets that loading a plugin crashed, so that it is tried again.
void forgive(const SessionPtr& session, const std::string& id) {
  Json known = Json::array();
  bool found = false;
  size_t forgiven = 0;
  for (const Json& plugin : report(session, tenon_plugin_list)) {
    known.push_back(plugin["id"]);
    if (plugin["id"] != id) continue;
    found = true;
    size_t crashes = plugin["crashes"].size();
    if (crashes == 0) continue;
    std::filesystem::remove(plugin["crash_record"].get<std::string>());
    forgiven += crashes;
    print(cat(plugin["file"].get<std::string>(), ": ", crashes,
              crashes == 1 ? " crash" : " crashes",
              " forgiven; it is loaded again when it is needed\n"));
  }
  if (!found)
    throw Error(TN_NOT_FOUND, cat("plugin forgive: expected one of the plugins ",
                                  joined(known, ", "), ", got '", id, "'"));
  if (!forgiven) print(cat("plugin ", id, ": nothing to forgive, loading it did not crash\n"));
}

void doctor(const SessionPtr& session, bool json) {
  Json report_of_places = report(session, tenon_plugin_doctor);
  if (json) return print_json(report_of_places);
  for (const Json& folder : report_of_places["places"]) {
    std::string why = folder["why"];
    print(cat(folder["folder"].get<std::string>(), "  (", folder["source"].get<std::string>(), ")",
              why.empty() ? "" : cat(": not searched: ", why), "\n"));
    for (const Json& file : folder["files"]) {
      std::string trouble = file["why"];
      print(cat("  ", file["file"].get<std::string>(), "  ",
                trouble.empty() ? "ok" : cat("not used: ", trouble), "\n"));
      for (const Json& remark : file["remarks"])
        print(cat("    ", remark.get<std::string>(), "\n"));
    }
  }
  for (const Json& backend : report_of_places["backends"]) {
    for (const Json& device : backend["devices"]) {
      std::string trouble = device.value("why", "");
      std::string precisions = joined(device.value("precisions", Json::array()), ", ");
      print(cat("backend ", backend["id"].get<std::string>(), ": ",
                trouble.empty() ? device.value("name", "a device") : cat("no device: ", trouble),
                precisions.empty() ? "" : cat(", computes in ", precisions), "\n"));
    }
  }
}

Action declare_list(CLI::App& app, const Tool& tool) {
  auto json = std::make_shared<JsonFlag>();
  json->add(&app);
  return [json, &tool] { list(tool.open(), json->json); };
}

Action declare_info(CLI::App& app, const Tool& tool) {
  struct Flags {
    std::string id;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("id", flags->id, "a component or plugin")->required()->type_name("ID");
  flags->json.add(&app);
  return [flags, &tool] { info(tool.open(), flags->id, flags->json.json); };
}

Action declare_doctor(CLI::App& app, const Tool& tool) {
  auto json = std::make_shared<JsonFlag>();
  json->add(&app);
  return [json, &tool] { doctor(tool.open(), json->json); };
}

Action declare_forgive(CLI::App& app, const Tool& tool) {
  auto id = std::make_shared<std::string>();
  app.add_option("id", *id, "a plugin that crashed while it was loaded")
      ->required()
      ->type_name("ID");
  return [id, &tool] { forgive(tool.open(), *id); };
}

constexpr Row kCommands[] = {
    {"list", "all components; runs no plugin code", declare_list},
    {"info", "one component or plugin, with its options", declare_info},
    {"doctor", "every folder and file, and why one is not used", declare_doctor},
    {"forgive", "load a plugin again that was quarantined for crashes", declare_forgive},
    {"check", "try out what the roles of a plugin promise", declare_plugin_check},
    {"new", "write a plugin to start from", declare_plugin_new},
};

}  // namespace

void declare_plugin(CLI::App& app, Tool& tool) {
  declare_rows(app, kCommands, tool);
}

}  // namespace tenon::command
