// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ values as Lua objects: userdata that ends at __gc, __close or object:close().

#include <span>

#include "runtime.hpp"

namespace tenon::lua {

// Each object type says its name for Lua: template <> inline constexpr ... in objects.hpp.
template <class T>
inline constexpr const char* kObjectName = nullptr;

template <class T>
std::optional<T>* object_place(lua_State* state, int index) {
  return static_cast<std::optional<T>*>(luaL_testudata(state, index, kObjectName<T>));
}

template <class T>
int end_object(lua_State* state) {
  if (std::optional<T>* place = object_place<T>(state, 1)) place->reset();
  return 0;
}

// The object, or NULL when the value is of another type.
template <class T>
T* find_object(lua_State* state, int index) {
  std::optional<T>* place = object_place<T>(state, index);
  if (place && !*place) invalid(cat(kObjectName<T>, ": used after it was closed"));
  return place ? &**place : nullptr;
}

template <class T>
T& object_argument(lua_State* state, int index, std::string_view function) {
  T* found = find_object<T>(state, index);
  if (!found) bad_argument(state, index, function, cat("a ", kObjectName<T>));
  return *found;
}

template <class T>
void push_object(lua_State* state, T value) {
  void* place = lua_newuserdatauv(state, sizeof(std::optional<T>), 1);
  new (place) std::optional<T>(std::move(value));
  luaL_setmetatable(state, kObjectName<T>);
}

// Makes the metatable: methods by name, and names with "__" as metamethods.
template <class T>
void register_object(lua_State* state, std::span<const Function> methods) {
  luaL_newmetatable(state, kObjectName<T>);
  lua_newtable(state);
  for (const Function& method : methods) {
    lua_pushcfunction(state, method.call);
    lua_setfield(state, method.name[0] == '_' ? -3 : -2, method.name);
  }
  lua_pushcfunction(state, end_object<T>);
  lua_setfield(state, -2, "close");
  // An object with its own __index finds methods through the table's second name.
  if (lua_getfield(state, -2, "__index") == LUA_TNIL) {
    lua_pushvalue(state, -2);
    lua_setfield(state, -4, "__index");
  }
  lua_pop(state, 1);
  lua_setfield(state, -2, "__methods");
  for (const char* event : {"__gc", "__close"}) {
    lua_pushcfunction(state, end_object<T>);
    lua_setfield(state, -2, event);
  }
  lua_pushboolean(state, 0);
  lua_setfield(state, -2, "__metatable");  // scripts cannot reach __gc
  lua_pop(state, 1);
}

}  // namespace tenon::lua
