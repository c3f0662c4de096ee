// SPDX-License-Identifier: Apache-2.0
// tn.callback{step = function, epoch = function}, and tn.callback.NAME{options}.
#include "tenon/role/callback.h"

#include "convert.hpp"
#include "script_functions.hpp"

namespace tenon::lua {
namespace {

constexpr int kStep = 1, kEpoch = 2;  // where the functions are on the stack of their thread

struct ScriptCallback {
  ScriptFunctions functions;
  tn_callback table;
};

// What one call is given.
struct Notice {
  const tn_progress_point* point = nullptr;
  tn_str record{};
  const tn_graph* model = nullptr;
  SessionPtr session{};
};

void push_point(lua_State* state, const tn_progress_point& at) {
  push_json(state, {{"step", at.step},
                    {"epoch", at.epoch},
                    {"loss", at.loss},
                    {"rate", at.rate},
                    {"skipped", at.skipped != 0}});
}

// On its stack: the notice, and the function.
int call_notified(lua_State* state) {
  const Notice& notice = *static_cast<const Notice*>(lua_touserdata(state, 1));
  if (notice.point) {
    push_point(state, *notice.point);
    lua_call(state, 1, 1);
    return 1;
  }
  push_json(state, Json::parse(cxx::view(notice.record)));
  tn_graph* copy = nullptr;  // a script may keep it
  cxx::check(notice.session->graph->clone(notice.model, &copy));
  push_model(state, cxx::Model(notice.session, copy));
  lua_call(state, 2, 1);
  return 1;
}

// Whether the run ends.
bool call(const ScriptFunctions& functions, int which, Notice notice) {
  functions.check_thread("callback");
  notice.session = functions.session;
  lua_State* state = functions.thread;
  luaL_checkstack(state, 4, "a callback");
  int top = lua_gettop(state);
  lua_pushcfunction(state, guarded<call_notified>);
  lua_pushlightuserdata(state, &notice);
  lua_pushvalue(state, which);
  bool failed = lua_pcall(state, 2, 1, 0) != LUA_OK;
  std::string wrong;
  if (failed) {
    wrong = lua_isstring(state, -1) ? lua_tostring(state, -1) : "it failed";
  } else if (!lua_isnil(state, -1) && !lua_isboolean(state, -1)) {
    wrong = cat("expected true to end the run, or nothing, got ", type_text(state, -1));
  }
  bool stops = lua_toboolean(state, -1);
  lua_settop(state, top);
  if (!wrong.empty()) invalid(wrong);
  return stops;
}

tn_status* step(void* self, const tn_progress_point* at, int32_t* out_stop) {
  const ScriptFunctions& functions = static_cast<ScriptCallback*>(self)->functions;
  return cxx::callback(*functions.session,
                       [&] { *out_stop = call(functions, kStep, {.point = at}); });
}
tn_status* epoch(void* self, tn_str record, const tn_graph* model, int32_t* out_stop) {
  const ScriptFunctions& functions = static_cast<ScriptCallback*>(self)->functions;
  return cxx::callback(*functions.session, [&] {
    *out_stop = call(functions, kEpoch, {.record = record, .model = model});
  });
}
void end_callback(void* self) {
  std::unique_ptr<ScriptCallback> callback(static_cast<ScriptCallback*>(self));
  callback->functions.drop();
}

// Takes the two functions on top of the stack; nil: none.
cxx::Component callback_of_functions(lua_State* state) {
  tn_callback table{sizeof table, 1, lua_isnil(state, -2) ? nullptr : step,
                    lua_isnil(state, -1) ? nullptr : epoch};
  auto self =
      std::make_unique<ScriptCallback>(ScriptCallback{ScriptFunctions::take(state, kEpoch), table});
  cxx::Component lent = cxx::Component::lend(self->functions.session, kCallbackRole, "lua.function",
                                             &self->table, self.get(), end_callback);
  static_cast<void>(self.release());  // end_callback's from now on
  return lent;
}

cxx::Component both(const cxx::Component& first, const cxx::Component& second) {
  cxx::Options options(first.session());
  options.set("first", first);
  options.set("second", second);
  return {first.session(), kCallbackRole, "trainer.both", options};
}

// tn.callback{step = function(point) ... end, epoch = function(record, model) ... end}
int make_of_functions(lua_State* state) {
  if (!lua_istable(state, 2)) bad_argument(state, 2, "tn.callback", "a table with step or epoch");
  lua_pushnil(state);
  while (lua_next(state, 2)) {
    std::string key = lua_type(state, -2) == LUA_TSTRING ? lua_tostring(state, -2) : "a list";
    if (!lua_isfunction(state, -1) || (key != "step" && key != "epoch"))
      invalid(cat("tn.callback: expected functions step and epoch, got ", key, ", ",
                  type_text(state, -1)));
    lua_pop(state, 1);
  }
  bool any = lua_getfield(state, 2, "step") != LUA_TNIL;
  any = (lua_getfield(state, 2, "epoch") != LUA_TNIL) || any;
  if (!any) invalid("tn.callback: expected functions step and epoch, got neither");
  push_object(state, callback_of_functions(state));
  return 1;
}

// The closure has the component's id.
int make(lua_State* state) {
  std::string id = lua_tostring(state, lua_upvalueindex(1));
  cxx::Options options = to_options(state, 1, kCallbackRole, id, cat("tn.callback: ", id));
  push_object(state, cxx::Component(runtime(state).session, kCallbackRole, id, options));
  return 1;
}
// tn.callback.snapshot makes trainer.snapshot; tn.callback["com.acme.notify"] works too.
int find(lua_State* state) {
  std::string name = text_argument(state, 2, "tn.callback");
  std::string id = cxx::full_id(*runtime(state).session, kCallbackRole, "trainer", name);
  return push_maker<make>(state, id);
}

}  // namespace

std::optional<cxx::Component> callback_of_value(lua_State* state, int index) {
  index = lua_absindex(state, index);
  if (auto* component = find_object<cxx::Component>(state, index)) return component->share();
  luaL_checkstack(state, 4, "callbacks");
  if (lua_isfunction(state, index)) {
    lua_pushnil(state);
    lua_pushvalue(state, index);
    return callback_of_functions(state);
  }
  if (lua_type(state, index) == LUA_TSTRING) {
    const SessionPtr& session = runtime(state).session;
    return cxx::Component(session, kCallbackRole, lua_tostring(state, index),
                          cxx::Options(session));
  }
  if (!lua_istable(state, index))
    invalid(cat("option callbacks: expected functions, callbacks or ids, got ",
                type_text(state, index)));
  std::optional<cxx::Component> all;
  for (lua_pushnil(state); lua_next(state, index) != 0; lua_pop(state, 1)) {
    if (lua_type(state, -2) == LUA_TSTRING)
      invalid(cat("option callbacks: expected a list, got a table with the key '",
                  lua_tostring(state, -2),
                  "'; tn.callback{step = ..., epoch = ...} makes a callback"));
  }
  for (lua_Integer i = luaL_len(state, index); i > 0; --i) {
    lua_geti(state, index, i);
    std::optional<cxx::Component> one = callback_of_value(state, -1);
    lua_pop(state, 1);
    if (one) all = all ? both(*one, *all) : std::move(one);
  }
  return all;
}

// Expects the table `tn` on top of the stack.
void register_callback(lua_State* state) {
  lua_newtable(state);
  lua_newtable(state);
  lua_pushcfunction(state, guarded<find>);
  lua_setfield(state, -2, "__index");
  lua_pushcfunction(state, guarded<make_of_functions>);
  lua_setfield(state, -2, "__call");
  lua_setmetatable(state, -2);
  lua_setfield(state, -2, "callback");
}

}  // namespace tenon::lua
