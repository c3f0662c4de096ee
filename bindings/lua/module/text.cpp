// SPDX-License-Identifier: Apache-2.0
// tn.print_table, tn.json, tn.write, tn.log.
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
