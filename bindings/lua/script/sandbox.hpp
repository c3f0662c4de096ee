// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a pipeline may do: no processes, no native modules, no bytecode, files by PathRules.

#include <lua.hpp>

namespace tenon::lua {

// Opens the libraries of Lua and takes away what a sandboxed script must not have. The runtime must
// have been set. folder: where `require` looks for modules in Lua.
void open_sandboxed(lua_State* state, const char* folder);
void open_trusted(lua_State* state, const char* folder);

}  // namespace tenon::lua
