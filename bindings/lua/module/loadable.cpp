// SPDX-License-Identifier: Apache-2.0
// The module for a Lua interpreter of somebody else's: require "tenon". Nothing is sandboxed there.
#include "objects.hpp"

namespace {

int open_here(lua_State* state) {
  tenon::lua::Runtime runtime;
  runtime.session = std::make_shared<tenon::cxx::Session>();
  runtime.paths.trust();
  tenon::lua::set_runtime(state, std::move(runtime));
  return tenon::lua::open_module(state);
}

}  // namespace

extern "C" TN_EXPORT int luaopen_tenon(lua_State* state) {
  return tenon::lua::guarded<open_here>(state);
}
