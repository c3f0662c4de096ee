// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lua values as JSON and options, and back.

#include "objects.hpp"

namespace tenon::lua {

// nil, booleans, numbers, strings and tables of them. A table with the keys 1..n is a list, an
// empty one an object. `where` begins the error: "tn.bench: options".
Json to_json(lua_State* state, int index, std::string_view where);
void push_json(lua_State* state, const Json& value);

// An optional table of options; what is no JSON (data sets, tensors, models) is set as it is.
// Options that are paths by the schema are checked against the script's rules.
cxx::Options to_options(lua_State* state,
                        int index,
                        std::string_view role,
                        const std::string& id,
                        std::string_view where);

// Checks the files that options of another component name, which is an option itself
// (metric_options): by the names that components have for paths.
void check_paths_within(lua_State* state, const Json& options);

// An optional table with text keys, of plain values only.
Json options_table(lua_State* state, int index, std::string_view where);

// The table of options at `index`, copied on top of the stack so that the caller's stays as it is.
int copied_table(lua_State* state, int index);

// Takes values out of a table of options; finish() complains about what was not taken.
class Given {
 public:
  Given(Json values, std::string where) : values_(std::move(values)), where_(std::move(where)) {}
  std::string text(const char* key, std::string fallback = "");
  int64_t integer(const char* key, int64_t fallback, int64_t most = INT64_MAX);
  bool truth(const char* key, bool fallback);
  Json object(const char* key);                     // by name, empty where nothing was given
  std::vector<std::string> texts(const char* key);  // a list, or one text
  Json take(const char* key);
  void finish() const;

 private:
  Json values_;
  std::string where_;
  std::vector<std::string> known_;
};

}  // namespace tenon::lua
