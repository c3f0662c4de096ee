// SPDX-License-Identifier: Apache-2.0
// tn.plugins, tn.components.
#include "convert.hpp"

namespace tenon::lua {
namespace {

int plugins(lua_State* state) {
  cxx::TextSink text;
  cxx::check(tenon_plugin_list(runtime(state).session->raw(), text.get()));
  push_json(state, Json::parse(text.text()));
  return 1;
}
// tn.components(role): known components with their option schemas; no role: all.
int components(lua_State* state) {
  std::string role = lua_isnoneornil(state, 1) ? "" : text_argument(state, 1, "tn.components");
  push_json(state, cxx::list_components(*runtime(state).session, role));
  return 1;
}

constexpr Function kFunctions[] = {
    {"plugins", guarded<plugins>},
    {"components", guarded<components>},
};

}  // namespace

const std::span<const Function> kPluginFunctions = kFunctions;

}  // namespace tenon::lua
