// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lua functions that a component of the script's own is made of.

#include <thread>

#include "runtime.hpp"

namespace tenon::lua {

// They have a coroutine of their own, so that the script's stack is not touched; the registry keeps
// it alive.
struct ScriptFunctions {
  lua_State* thread;
  int kept;
  std::weak_ptr<int> alive;
  std::thread::id owner;
  SessionPtr session;

  // Takes the values on top of the stack, which become 1 to count on the stack of `thread`.
  static ScriptFunctions take(lua_State* state, int count) {
    lua_State* thread = lua_newthread(state);
    lua_insert(state, -count - 1);
    lua_xmove(state, thread, count);
    int kept = luaL_ref(state, LUA_REGISTRYINDEX);
    Runtime& run = runtime(state);
    return {thread, kept, run.alive, std::this_thread::get_id(), run.session};
  }
  // Throws on another thread than the script's, and when the script is over.
  void check_thread(std::string_view as) const {
    if (std::this_thread::get_id() == owner && !alive.expired()) return;
    throw Error(
        TN_FAILED_PRECONDITION,
        cat("a Lua function as ", as, " is for the script's own thread, while the script runs"));
  }
  void drop() {
    if (!alive.expired() && std::this_thread::get_id() == owner)
      luaL_unref(thread, LUA_REGISTRYINDEX, kept);
  }
};

}  // namespace tenon::lua
