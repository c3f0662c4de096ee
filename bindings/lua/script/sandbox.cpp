// SPDX-License-Identifier: Apache-2.0
#include "sandbox.hpp"

#include "../module/runtime.hpp"

namespace tenon::lua {
namespace {

// A function that says why it is not there. Its upvalue is its name.
int refused(lua_State* state) {
  std::string name = lua_tostring(state, lua_upvalueindex(1));
  throw Error(TN_PERMISSION_DENIED,
              cat(name, ": not allowed in a pipeline; lift the sandbox with --trust"));
}

// Each name of `library` that a sandboxed script must not call.
void refuse(lua_State* state, const char* library, std::initializer_list<const char*> names) {
  lua_getglobal(state, library);
  for (const char* name : names) {
    lua_pushstring(state, cat(library, ".", name).c_str());
    lua_pushcclosure(state, guarded<refused>, 1);
    lua_setfield(state, -2, name);
  }
  lua_pop(state, 1);
}

// Calls the function of Lua's own that is upvalue 1. What it raises begins with the script's line,
// where Lua would say that of this function, which has none.
int call_real(lua_State* state) {
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  if (lua_pcall(state, lua_gettop(state) - 1, LUA_MULTRET, 0) == LUA_OK) return lua_gettop(state);
  if (lua_type(state, -1) != LUA_TSTRING) return lua_error(state);
  push_users_line(state);
  lua_insert(state, -2);
  lua_concat(state, 2);
  return lua_error(state);
}

// A path as the first argument is checked; a number is one, by its digits.
int with_checked_path(lua_State* state) {
  if (lua_isstring(state, 1)) {
    lua_pushvalue(state, 1);
    std::string path = lua_tostring(state, -1);
    lua_pop(state, 1);
    runtime(state).paths.check(path);
  }
  return call_real(state);
}

// load(chunk, name, mode, env) with text only: bytecode can break out of Lua.
int load_text(lua_State* state) {
  bool has_environment = lua_gettop(state) >= 4;
  lua_settop(state, 4);
  lua_pushstring(state, "t");
  lua_replace(state, 3);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  if (!has_environment) lua_settop(state, 4);  // an environment of nil is not none
  lua_call(state, has_environment ? 4 : 3, LUA_MULTRET);
  return lua_gettop(state);
}
// loadfile(path, mode, env), with text only as well.
int load_file(lua_State* state) {
  std::string path = path_argument(state, 1, "loadfile");
  bool has_environment = lua_gettop(state) >= 3;
  lua_settop(state, 3);
  if (luaL_loadfilex(state, path.c_str(), "t") != LUA_OK) {
    lua_pushnil(state);
    lua_insert(state, -2);
    return 2;
  }
  if (!has_environment) return 1;
  lua_pushvalue(state, 3);
  if (!lua_setupvalue(state, 4, 1)) lua_pop(state, 1);
  return 1;
}
int do_file(lua_State* state) {
  std::string path = path_argument(state, 1, "dofile");
  if (luaL_loadfilex(state, path.c_str(), "t") != LUA_OK) return lua_error(state);
  lua_call(state, 0, LUA_MULTRET);
  return lua_gettop(state) - 1;
}
// A searcher of require: modules in Lua in the script's folder. Upvalue: the folder.
int find_module(lua_State* state) {
  std::string name = text_argument(state, 1, "require");
  std::string path = lua_tostring(state, lua_upvalueindex(1));
  path += "/";
  for (char c : name)
    path += c == '.' ? '/' : c;
  path += ".lua";
  if (!std::filesystem::exists(path)) {
    lua_pushstring(state, cat("no file '", path, "'").c_str());
    return 1;
  }
  runtime(state).paths.check(path);
  if (luaL_loadfilex(state, path.c_str(), "t") != LUA_OK) return lua_error(state);
  lua_pushstring(state, path.c_str());
  return 2;
}

// A searcher that finds nothing, but refuses a module whose loading is under way: it would be
// loaded again until the stack ends. Upvalue: require, whose calls are looked for on the stack.
int refuse_cycle(lua_State* state) {
  lua_Debug call;
  for (int level = 2; lua_getstack(state, level, &call); ++level) {
    lua_getinfo(state, "f", &call);
    bool is_same = lua_rawequal(state, -1, lua_upvalueindex(1)) != 0;
    lua_pop(state, 1);
    if (!is_same || !lua_getlocal(state, &call, 1)) continue;
    is_same = lua_rawequal(state, -1, 1) != 0;
    lua_pop(state, 1);
    if (!is_same) continue;
    luaL_where(state, 2);
    lua_pushfstring(state, "module '%s' requires itself", lua_tostring(state, 1));
    lua_concat(state, 2);
    return lua_error(state);
  }
  return 0;
}

// After what is preloaded, before everything that loads files.
void refuse_cycles(lua_State* state) {
  lua_getglobal(state, "package");
  lua_getfield(state, -1, "searchers");
  for (lua_Integer i = luaL_len(state, -1); i > 1; --i) {
    lua_rawgeti(state, -1, i);
    lua_rawseti(state, -2, i + 1);
  }
  lua_getglobal(state, "require");
  lua_pushcclosure(state, refuse_cycle, 1);
  lua_rawseti(state, -2, 2);
  lua_pop(state, 2);
}

void wrap(lua_State* state, const char* library, const char* name, lua_CFunction with) {
  lua_getglobal(state, library);
  lua_getfield(state, -1, name);
  lua_pushcclosure(state, with, 1);
  lua_setfield(state, -2, name);
  lua_pop(state, 1);
}

// require finds what is preloaded and modules in Lua, nothing else.
void limit_require(lua_State* state, const char* folder) {
  lua_getglobal(state, "package");
  lua_getfield(state, -1, "searchers");
  for (lua_Integer i = luaL_len(state, -1); i > 1; --i) {
    lua_pushnil(state);
    lua_rawseti(state, -2, i);
  }
  lua_pushstring(state, folder);
  lua_pushcclosure(state, guarded<find_module>, 1);
  lua_rawseti(state, -2, 2);
  lua_pop(state, 1);
  lua_pushstring(state, "");
  lua_setfield(state, -2, "cpath");
  lua_pop(state, 1);
  refuse(state, "package", {"loadlib", "searchpath"});
}

// Only the traceback: hooks and registries would open the way out.
void limit_debug(lua_State* state) {
  lua_getglobal(state, "debug");
  lua_getfield(state, -1, "traceback");
  lua_newtable(state);
  lua_pushvalue(state, -2);
  lua_setfield(state, -2, "traceback");
  lua_pushvalue(state, -1);
  lua_setglobal(state, "debug");
  luaL_getsubtable(state, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushvalue(state, -2);
  lua_setfield(state, -2, "debug");
  lua_settop(state, 0);
}

// Lua runs finalizers without hooks: one that does not end would be beyond every limit.
int set_metatable(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  luaL_argexpected(state, lua_isnil(state, 2) || lua_istable(state, 2), 2, "nil or table");
  if (lua_istable(state, 2)) {
    lua_pushstring(state, "__gc");
    if (lua_rawget(state, 2) != LUA_TNIL)
      return luaL_error(state,
                        "setmetatable: __gc: not allowed in a pipeline (use `local x "
                        "<close>`); lift the sandbox with --trust");
    lua_pop(state, 1);
  }
  if (luaL_getmetafield(state, 1, "__metatable") != LUA_TNIL)
    return luaL_error(state, "cannot change a protected metatable");
  lua_settop(state, 2);
  lua_setmetatable(state, 1);
  return 1;
}
void limit_finalizers(lua_State* state) {
  lua_pushcfunction(state, set_metatable);
  lua_setglobal(state, "setmetatable");
  luaL_getmetatable(state, LUA_FILEHANDLE);
  lua_pushboolean(state, 0);
  lua_setfield(state, -2, "__metatable");
  lua_settop(state, 0);
}

}  // namespace

void open_trusted(lua_State* state, const char* folder) {
  luaL_openlibs(state);
  lua_getglobal(state, "package");
  lua_getfield(state, -1, "path");
  lua_pushstring(state, cat(folder, "/?.lua;", lua_tostring(state, -1)).c_str());
  lua_setfield(state, -3, "path");
  lua_settop(state, 0);
  refuse_cycles(state);
}

void open_sandboxed(lua_State* state, const char* folder) {
  luaL_openlibs(state);
  refuse(state, "os", {"execute", "exit", "remove", "rename", "tmpname", "setlocale", "getenv"});
  refuse(state, "io", {"popen", "tmpfile"});
  for (const char* name : {"open", "lines", "input", "output"})
    wrap(state, "io", name, guarded<with_checked_path>);
  wrap(state, "_G", "load", guarded<load_text>);
  lua_pushcfunction(state, guarded<load_file>);
  lua_setglobal(state, "loadfile");
  lua_pushcfunction(state, guarded<do_file>);
  lua_setglobal(state, "dofile");
  limit_require(state, folder);
  refuse_cycles(state);
  limit_debug(state);
  limit_finalizers(state);
}

}  // namespace tenon::lua
