// SPDX-License-Identifier: Apache-2.0
// tn.print_table, tn.json, tn.write, tn.chrome_trace, tn.log.
#include "tenon/cxx/file.hpp"
#include "tenon/cxx/terminal.hpp"

#include "convert.hpp"
#include "table_text.hpp"

namespace tenon::lua {
namespace {

// tn.print_table(rows, {"column", ...})
int print_table(lua_State* state) {
  Json rows = to_json(state, 1, "tn.print_table");
  if (rows.is_object() && rows.empty()) rows = Json::array();
  if (!rows.is_array()) bad_argument(state, 1, "tn.print_table", "a list of rows");
  for (const Json& row : rows)
    if (!row.is_object())
      invalid(cat("tn.print_table: expected rows by name of column, got ", cxx::dump(row)));
  std::vector<std::string> columns;
  if (!lua_isnoneornil(state, 2)) {
    for (const Json& name : to_json(state, 2, "tn.print_table")) {
      if (!name.is_string()) invalid("tn.print_table: expected names of columns");
      columns.push_back(name);
    }
  }
  std::string text = table_text(rows, columns);
  cxx::print_text(text);
  return 0;
}
// tn.json(value): one line of JSON.
int json(lua_State* state) {
  lua_pushstring(state, cxx::dump(to_json(state, 1, "tn.json")).c_str());
  return 1;
}
// tn.write(path, text): a whole file or none.
int write(lua_State* state) {
  std::string path = path_argument(state, 1, "tn.write");
  cxx::write_file(runtime(state).session, path, text_argument(state, 2, "tn.write"));
  return 0;
}

// Calls the function at the top; whether it failed, with its error on the stack.
bool call_traced(lua_State* state, const std::string& path) {
  const SessionPtr& session = runtime(state).session;
  session->start_trace();
  bool failed = lua_pcall(state, 0, LUA_MULTRET, 0) != LUA_OK;
  cxx::write_file(session, path, session->stop_trace());
  return failed;
}
// tn.chrome_trace(path, function): calls the function, gives what it gives, and writes what
// happened meanwhile for chrome://tracing.
int chrome_trace(lua_State* state) {
  bool failed = false;
  {
    std::string path = path_argument(state, 1, "tn.chrome_trace");
    if (!lua_isfunction(state, 2)) bad_argument(state, 2, "tn.chrome_trace", "a function");
    lua_settop(state, 2);
    failed = call_traced(state, path);
  }
  return failed ? lua_error(state) : lua_gettop(state) - 1;  // what is below is the path
}

template <uint32_t Level>
int log(lua_State* state) {
  cxx::Session& session = *runtime(state).session;
  session.log->write(session.ctx(), Level, cxx::str(text_argument(state, 1, "tn.log")));
  return 0;
}

constexpr Function kFunctions[] = {
    {"print_table", guarded<print_table>},
    {"json", guarded<json>},
    {"write", guarded<write>},
    {"chrome_trace", guarded<chrome_trace>},
};
constexpr Function kLevels[] = {
    {"debug", guarded<log<TN_LOG_DEBUG>>},
    {"info", guarded<log<TN_LOG_INFO>>},
    {"warning", guarded<log<TN_LOG_WARNING>>},
    {"error", guarded<log<TN_LOG_ERROR>>},
};

}  // namespace

const std::span<const Function> kTextFunctions = kFunctions;
const std::span<const Function> kLogFunctions = kLevels;

}  // namespace tenon::lua
