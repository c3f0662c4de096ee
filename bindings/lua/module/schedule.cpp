// SPDX-License-Identifier: Apache-2.0
// tn.schedule.NAME{options}, tn.schedule(function), and what a schedule can do.
#include <cmath>

#include "convert.hpp"
#include "script_functions.hpp"

namespace tenon::lua {
namespace {

using cxx::Schedule;

double call(const ScriptFunctions& function, uint64_t step, uint64_t total) {
  function.check_thread("schedule");
  lua_State* state = function.thread;
  luaL_checkstack(state, 4, "a schedule");
  int top = lua_gettop(state);
  lua_pushvalue(state, 1);
  lua_pushinteger(state, static_cast<lua_Integer>(step));
  if (total == TN_STEPS_UNKNOWN) {
    lua_pushnil(state);
  } else {
    lua_pushinteger(state, static_cast<lua_Integer>(total));
  }
  bool failed = lua_pcall(state, 2, 1, 0) != LUA_OK;
  std::string wrong;
  double value = lua_tonumber(state, -1);
  if (failed) {
    wrong = lua_isstring(state, -1) ? lua_tostring(state, -1) : "it failed";
  } else if (lua_type(state, -1) != LUA_TNUMBER || !std::isfinite(value)) {
    wrong = cat("step ", step, ": expected a finite number, got ",
                lua_type(state, -1) == LUA_TNUMBER ? std::to_string(value) : type_text(state, -1));
  }
  lua_settop(state, top);
  if (!wrong.empty()) invalid(wrong);
  return value;
}

tn_status* value_of(void* self, uint64_t step, uint64_t total, double* out) {
  auto& function = *static_cast<ScriptFunctions*>(self);
  return cxx::callback(*function.session, [&] { *out = call(function, step, total); });
}

void end_function(void* self) {
  std::unique_ptr<ScriptFunctions> function(static_cast<ScriptFunctions*>(self));
  function->drop();
}

constexpr tn_schedule kFunctionTable{sizeof(tn_schedule), 1, value_of};

// The closure has the component's id.
int make(lua_State* state) {
  std::string id = lua_tostring(state, lua_upvalueindex(1));
  cxx::Options options = to_options(state, 1, Schedule::kRole, id, cat("tn.schedule: ", id));
  push_object(state, Schedule(runtime(state).session, id, options));
  return 1;
}
// tn.schedule.cosine makes scheduler.cosine; tn.schedule["com.acme.wave"] works too.
int find(lua_State* state) {
  std::string name = text_argument(state, 2, "tn.schedule");
  std::string id = cxx::full_id(*runtime(state).session, Schedule::kRole, "scheduler", name);
  return push_maker<make>(state, id);
}
// tn.schedule(function(step, steps) return ... end)
int make_of_function(lua_State* state) {
  if (!lua_isfunction(state, 2)) bad_argument(state, 2, "tn:schedule", "a function of the step");
  push_object(state, schedule_of_function(state, 2));
  return 1;
}

uint64_t steps_argument(lua_State* state, int index) {
  int64_t steps = integer_argument(state, index, "schedule:");
  if (steps < 0) invalid(cat("schedule: expected a step from 0 on, got ", steps));
  return static_cast<uint64_t>(steps);
}
// schedule(step [, steps])
int value(lua_State* state) {
  auto& schedule = object_argument<Schedule>(state, 1, "schedule:");
  uint64_t step = steps_argument(state, 2);
  uint64_t total = lua_isnoneornil(state, 3) ? TN_STEPS_UNKNOWN : steps_argument(state, 3);
  lua_pushnumber(state, schedule.value(step, total));
  return 1;
}
int to_string(lua_State* state) {
  auto& schedule = object_argument<Schedule>(state, 1, "schedule:");
  lua_pushstring(state, cat("tenon.schedule(", schedule.component().id(), ")").c_str());
  return 1;
}

constexpr Function kMethods[] = {
    {"value", guarded<value>},
    {"__call", guarded<value>},
    {"__tostring", guarded<to_string>},
};

}  // namespace

cxx::Schedule schedule_of_function(lua_State* state, int index) {
  lua_pushvalue(state, index);
  auto self = std::make_unique<ScriptFunctions>(ScriptFunctions::take(state, 1));
  cxx::Component lent = cxx::Component::lend(self->session, Schedule::kRole, "lua.function",
                                             &kFunctionTable, self.get(), end_function);
  static_cast<void>(self.release());  // end_function's from now on
  return Schedule(std::move(lent));
}

// Expects the table `tn` on top of the stack.
void register_schedule(lua_State* state) {
  register_object<Schedule>(state, kMethods);
  lua_newtable(state);
  lua_newtable(state);
  lua_pushcfunction(state, guarded<find>);
  lua_setfield(state, -2, "__index");
  lua_pushcfunction(state, guarded<make_of_function>);
  lua_setfield(state, -2, "__call");
  lua_setmetatable(state, -2);
  lua_setfield(state, -2, "schedule");
}

}  // namespace tenon::lua
