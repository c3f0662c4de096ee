// SPDX-License-Identifier: Apache-2.0
#include "data_flags.hpp"

#include "tenon/cxx/choice.hpp"

namespace tenon::command {
namespace {

constexpr const char* kFlag = "--data-option";

// What a schema says of one option: its types, and those of a list's items.
std::vector<std::string> types_in(const Json& property) {
  Json types = property.value("type", Json("string"));
  return types.is_array() ? types.get<std::vector<std::string>>()
                          : std::vector<std::string>{types.get<std::string>()};
}
bool has(const std::vector<std::string>& types, const char* name) {
  return std::find(types.begin(), types.end(), name) != types.end();
}

// 224x224, 0.5,0.4,0.3 and a,b are lists where one is expected.
Json value_for(const Json& property, const std::string& text) {
  const std::vector<std::string> types = types_in(property);
  const Json plain = value_of(text);
  const Json items = property.value("items", Json::object());
  const bool takes_sizes = has(types_in(items), "integer") && !has(types_in(items), "string");
  const char* breaks = takes_sizes ? ",x" : ",";
  if (plain.is_array()) return plain;
  if (has(types, "array") && text.find_first_of(breaks) != std::string::npos) {
    Json list = Json::array();
    for (size_t at = 0; at <= text.size();) {
      size_t end = std::min(text.find_first_of(breaks, at), text.size());
      list.push_back(value_for(items, text.substr(at, end - at)));
      at = end + 1;
    }
    return list;
  }
  const bool is_text_only = has(types, "string") && !has(types, "integer") && !has(types, "number");
  if (is_text_only) return text;
  return has(types, "array") && types.size() == 1 ? Json::array({value_for(items, text)}) : plain;
}

}  // namespace

CLI::Option* DataFlags::add(CLI::App* app, const char* about) {
  CLI::Option* data = app->add_option("--data", path, about)->type_name("FILE");
  app->add_option(kFlag, options,
                  "how the data is read: resize, mean, std, layout, label, columns, delimiter, ... "
                  "(tenon plugin info datasets)")
      ->type_name("KEY=VALUE")
      ->needs(data)
      ->allow_extra_args(false);
  return data;
}

Json DataFlags::values(const cxx::Session& session) const {
  Json out = Json::object();
  if (options.empty()) return out;
  static constexpr const char* kRole = "tenon.dataset/1";
  const std::string id = cxx::component_for_file(session, kRole, path);
  Json properties = Json::object();
  for (const Json& one : cxx::list_components(session, kRole))
    if (one["id"] == id && one["schema"].is_object())
      properties = one["schema"].value("properties", Json::object());
  properties.erase("path");
  std::vector<std::string> known;
  for (const auto& [key, property] : properties.items())
    known.push_back(key);
  for (const std::string& pair : options) {
    auto [key, text] = split_pair(pair, kFlag);
    if (!properties.contains(key))
      throw UsageError(cat(kFlag, " ", key, ": expected one of ", cxx::listed(known), ", which ",
                           id, " takes for ", path, did_you_mean(key, known)));
    if (out.contains(key)) throw UsageError(cat(kFlag, " ", key, ": given twice"));
    out[key] = value_for(properties[key], text);
  }
  return out;
}

cxx::Dataset DataFlags::open(const SessionPtr& session) const {
  Json given = values(*session);
  try {
    return cxx::Dataset::open(session, path, given);
  } catch (const Error& failed) {
    if (std::string_view(failed.what()).find("option ") == std::string_view::npos) throw;
    throw Error(failed.code(), cat(failed.what(), " (", kFlag, " KEY=VALUE)"));
  }
}

void DataFlags::with_advice(const Action& work) const {
  try {
    work();
  } catch (const std::runtime_error& failed) {
    const std::string_view why = failed.what();
    if (path.empty() && why.find("option data: expected") != std::string_view::npos)
      throw Error(TN_INVALID_ARGUMENT, cat(why, " (give one by --data FILE)"));
    if (why.find("; options of ") == std::string_view::npos) throw;
    throw Error(TN_INVALID_ARGUMENT, cat(failed.what(), " (give one by ", kFlag, " KEY=VALUE)"));
  }
}

}  // namespace tenon::command
