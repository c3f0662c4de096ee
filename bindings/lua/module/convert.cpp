// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tenon::lua {
namespace {

constexpr int kMaxDepth = 64;

Json convert(lua_State* state, int index, std::string_view where, int depth);

// In Lua a list of nothing looks like a table of nothing; ours carry this metatable.
constexpr const char* kEmptyList = "tenon.list";

void mark_list(lua_State* state) {
  if (luaL_newmetatable(state, kEmptyList)) {
    lua_pushboolean(state, 0);
    lua_setfield(state, -2, "__metatable");  // a script would give all lists a __gc by it
  }
  lua_setmetatable(state, -2);
}
bool is_marked_list(lua_State* state, int index) {
  if (!lua_getmetatable(state, index)) return false;
  luaL_getmetatable(state, kEmptyList);
  bool marked = lua_rawequal(state, -1, -2) != 0;
  lua_pop(state, 2);
  return marked;
}

bool is_list(lua_State* state, int index) {
  lua_Unsigned length = lua_rawlen(state, index);
  lua_Unsigned keys = 0;
  lua_pushnil(state);
  while (lua_next(state, index)) {
    lua_pop(state, 1);
    ++keys;
  }
  return keys == length && (length > 0 || is_marked_list(state, index));
}

Json convert_table(lua_State* state, int index, std::string_view where, int depth) {
  if (depth > kMaxDepth) invalid(cat(where, ": tables nested deeper than ", kMaxDepth));
  luaL_checkstack(state, 4, "nested tables");
  if (is_list(state, index)) {
    Json list = Json::array();
    for (lua_Unsigned i = 1; i <= lua_rawlen(state, index); ++i) {
      lua_rawgeti(state, index, static_cast<lua_Integer>(i));
      list.push_back(convert(state, lua_gettop(state), where, depth + 1));
      lua_pop(state, 1);
    }
    return list;
  }
  // Sorted, because Lua's own order differs from run to run.
  nlohmann::json object = nlohmann::json::object();
  lua_pushnil(state);
  while (lua_next(state, index)) {
    if (lua_type(state, -2) != LUA_TSTRING)
      invalid(cat(where, ": expected names or 1..n as keys, got ", type_text(state, -2)));
    const std::string key(lua_tostring(state, -2), lua_rawlen(state, -2));
    object[key] = convert(state, lua_gettop(state), cat(where, ": ", key), depth + 1);
    lua_pop(state, 1);
  }
  Json sorted = Json::object();
  for (auto& [key, value] : object.items())
    sorted[key] = value;
  return sorted;
}

Json convert(lua_State* state, int index, std::string_view where, int depth) {
  switch (lua_type(state, index)) {
    case LUA_TNIL:
      return nullptr;
    case LUA_TBOOLEAN:
      return lua_toboolean(state, index) != 0;
    case LUA_TNUMBER:
      if (lua_isinteger(state, index)) return static_cast<int64_t>(lua_tointeger(state, index));
      return lua_tonumber(state, index);
    case LUA_TSTRING:
      return std::string(lua_tostring(state, index), lua_rawlen(state, index));
    case LUA_TTABLE:
      return convert_table(state, index, where, depth);
    default:
      invalid(cat(where, ": expected plain values, got ", type_text(state, index)));
  }
}

// JSON has no other numbers: they would arrive as if nothing had been said.
void check_finite(const Json& value, const std::string& where) {
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i)
      check_finite(value[i], cat(where, ": ", i + 1));
  } else if (value.is_object()) {
    for (const auto& [key, item] : value.items())
      check_finite(item, cat(where, ": ", key));
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    invalid(cat(where, ": expected a finite number, got ", value.get<double>()));
  }
}

const Json schema_of(const Runtime& run, std::string_view role, const std::string& id) {
  for (const Json& one : cxx::list_components(*run.session, role)) {
    if (one["id"] == id && one["schema"].is_object() && one["schema"].contains("properties"))
      return one["schema"]["properties"];
  }
  return Json::object();
}

void set_rate(const Optimizer& optimizer, cxx::Options& options) {
  if (auto* schedule = std::get_if<cxx::Schedule>(&optimizer.rate))
    options.set("rate", schedule->component());
  else
    options.set("rate", {TN_ANY_F64, 0, 1, {.f = std::get<double>(optimizer.rate)}});
}

// True when the value was an object of ours and has been set. takes_rate: an optimizer's rate is
// set as well.
bool set_object(lua_State* state,
                int index,
                const std::string& key,
                const Json& option,
                bool takes_rate,
                cxx::Options& options) {
  std::string role = option.is_object() ? option.value("role", "") : "";
  if (lua_isfunction(state, index) && role == cxx::Schedule::kRole) {
    options.set(key, schedule_of_function(state, index).component());
  } else if (role == cxx::Schedule::kRole && lua_istable(state, index)) {
    auto listed = schedules_of_table(state, index);
    if (listed) options.set(key, *listed);
    return listed.has_value();
  } else if (role == kCallbackRole) {
    if (auto callback = callback_of_value(state, index)) options.set(key, *callback);
  } else if (auto* schedule = find_object<cxx::Schedule>(state, index)) {
    options.set(key, schedule->component());
  } else if (auto* component = find_object<cxx::Component>(state, index)) {
    options.set(key, *component);
  } else if (auto* optimizer = find_object<Optimizer>(state, index)) {
    options.set(key, optimizer->component);
    if (takes_rate) set_rate(*optimizer, options);
  } else if (auto* data = find_object<cxx::Dataset>(state, index)) {
    options.set(key, data->component());
  } else if (auto* tensor = find_object<cxx::Tensor>(state, index)) {
    options.set(key, *tensor);
  } else if (auto* model = find_object<cxx::Model>(state, index)) {
    options.set(key, model->get());
  } else {
    return false;
  }
  return true;
}

// From 2^63 on: a float, as Lua itself reads such a number.
bool is_beyond_integers(const Json& value) {
  return value.is_number_unsigned() && !std::in_range<int64_t>(value.get<uint64_t>());
}

}  // namespace

Json to_json(lua_State* state, int index, std::string_view where) {
  return convert(state, lua_absindex(state, index), where, 0);
}

void push_json(lua_State* state, const Json& value) {
  luaL_checkstack(state, 4, "nested tables");
  if (value.is_boolean()) {
    lua_pushboolean(state, value.get<bool>());
  } else if (value.is_number_integer() && !is_beyond_integers(value)) {
    lua_pushinteger(state, value.get<int64_t>());
  } else if (value.is_number()) {
    lua_pushnumber(state, value.get<double>());
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    lua_pushlstring(state, text.data(), text.size());
  } else if (value.is_array()) {
    lua_createtable(state, static_cast<int>(value.size()), 0);
    if (value.empty()) mark_list(state);
    lua_Integer i = 0;
    for (const Json& item : value) {
      push_json(state, item);
      lua_rawseti(state, -2, ++i);
    }
  } else if (value.is_object()) {
    lua_newtable(state);
    for (const auto& [key, item] : value.items()) {
      push_json(state, item);
      lua_setfield(state, -2, key.c_str());
    }
  } else {
    lua_pushnil(state);
  }
}

void check_paths_within(lua_State* state, const Json& options) {
  const Runtime& run = runtime(state);
  if (std::ranges::none_of(options, [](const Json& one) { return one.is_string(); })) return;
  for (const Json& one : cxx::list_components(*run.session, "")) {
    const Json schema = one["schema"].is_object() ? one["schema"] : Json::object();
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [key, option] : properties.items()) {
      const Json given = options.value(key, Json());
      if (option.value("type", Json()) == "path" && given.is_string() && given != "")
        run.paths.check(given);
    }
  }
}

Json options_table(lua_State* state, int index, std::string_view where) {
  if (lua_isnoneornil(state, index)) return Json::object();
  if (!lua_istable(state, index)) bad_argument(state, index, where, "a table of options");
  Json options = to_json(state, index, where);
  check_finite(options, std::string(where));
  if (!options.is_object()) invalid(cat(where, ": expected options by name, got a list"));
  return options;
}

cxx::Options to_options(lua_State* state,
                        int index,
                        std::string_view role,
                        const std::string& id,
                        std::string_view where) {
  Runtime& run = runtime(state);
  cxx::Options options(run.session);
  if (lua_isnoneornil(state, index)) return options;
  if (!lua_istable(state, index)) bad_argument(state, index, where, "a table of options");
  const Json schema = schema_of(run, role, id);
  Json plain = Json::object();
  index = lua_absindex(state, index);
  const Json rate = schema.value("rate", Json::object());
  const bool takes_rate = lua_getfield(state, index, "rate") == LUA_TNIL &&
                          rate.value("role", "") == cxx::Schedule::kRole;
  lua_pop(state, 1);
  lua_pushnil(state);
  while (lua_next(state, index)) {
    if (lua_type(state, -2) != LUA_TSTRING)
      invalid(cat(where, ": ", id, ": expected options by name, got a list"));
    std::string key = lua_tostring(state, -2);
    const Json option = schema.contains(key) ? schema[key] : Json();
    if (!set_object(state, lua_gettop(state), key, option, takes_rate, options)) {
      std::string place = cat(where, ": option ", key);
      plain[key] = to_json(state, -1, place);
      check_finite(plain[key], place);
      Json type = schema.contains(key) ? schema[key].value("type", Json()) : Json();
      // A data set may be given as the name of its file.
      if (plain[key].is_string() && (type == "path" || type == "component"))
        if (std::string text = plain[key]; type == "path" || text.find('/') != std::string::npos)
          if (!text.empty()) run.paths.check(text);
      if (plain[key].is_object()) check_paths_within(state, plain[key]);
    }
    lua_pop(state, 1);
  }
  cxx::check(run.session->options->parse(const_cast<tn_options*>(options.get()),
                                         cxx::str(cxx::dump(plain))));
  return options;
}

int copied_table(lua_State* state, int index) {
  lua_newtable(state);
  int copy = lua_gettop(state);
  if (!lua_istable(state, index)) return copy;
  lua_pushnil(state);
  while (lua_next(state, index)) {
    lua_pushvalue(state, -2);
    lua_insert(state, -2);
    lua_rawset(state, copy);
  }
  return copy;
}

std::string Given::text(const char* key, std::string fallback) {
  Json value = take(key);
  if (value.is_null()) return fallback;
  if (!value.is_string())
    invalid(cat(where_, ": option ", key, ": expected a string, got ", cxx::dump(value)));
  return value;
}

std::vector<std::string> Given::texts(const char* key) {
  Json value = take(key);
  if (value.is_null()) return {};
  if (value.is_string()) value = Json::array({value});
  bool fits = value.is_array() &&
              std::ranges::all_of(value, [](const Json& one) { return one.is_string(); });
  if (!fits)
    invalid(cat(where_, ": option ", key, ": expected a string or a list of strings, got ",
                cxx::dump(value)));
  return value;
}

int64_t Given::integer(const char* key, int64_t fallback, int64_t most) {
  Json value = take(key);
  if (value.is_null()) return fallback;
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > most)
    invalid(cat(where_, ": option ", key, ": expected a whole number of at least 0",
                most < INT64_MAX ? cat(" and at most ", most) : "", ", got ", cxx::dump(value)));
  return value;
}

bool Given::truth(const char* key, bool fallback) {
  Json value = take(key);
  if (value.is_null()) return fallback;
  if (!value.is_boolean())
    invalid(cat(where_, ": option ", key, ": expected true or false, got ", cxx::dump(value)));
  return value;
}

Json Given::object(const char* key) {
  Json value = take(key);
  if (value.is_null()) return Json::object();
  if (!value.is_object())
    invalid(cat(where_, ": option ", key, ": expected a table by name, got ", cxx::dump(value)));
  return value;
}

Json Given::take(const char* key) {
  known_.emplace_back(key);
  Json value = values_.value(key, Json());
  values_.erase(key);
  return value;
}

void Given::finish() const {
  if (values_.empty()) return;
  std::string known;
  for (const std::string& key : known_)
    known += cat(known.empty() ? "" : ", ", key);
  invalid(cat(where_, ": expected options among ", known, ", got '", values_.begin().key(), "'"));
}

}  // namespace tenon::lua
