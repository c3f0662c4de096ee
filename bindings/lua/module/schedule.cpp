// SPDX-License-Identifier: Apache-2.0
// tn.schedule.NAME{options}, tn.schedule(function), and what a schedule can do.
#include <cmath>
#include <map>

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

namespace {

// A schedule, a function of the step or a number; nothing for anything else.
std::optional<Schedule> live_schedule(lua_State* state, int index) {
  if (auto* schedule = find_object<Schedule>(state, index))
    return Schedule(schedule->component().share());
  if (lua_isfunction(state, index)) return schedule_of_function(state, index);
  if (lua_type(state, index) != LUA_TNUMBER) return std::nullopt;
  cxx::Options options(runtime(state).session, {{"base", lua_tonumber(state, index)}});
  return Schedule(runtime(state).session, "scheduler.constant", options);
}

// The entry on top of the stack as a schedule, and the rules that it has beside it.
Schedule entry_schedule(lua_State* state, const std::string& where, Json* rules) {
  *rules = Json::object();
  if (auto live = live_schedule(state, -1)) return std::move(*live);
  if (!lua_istable(state, -1))
    invalid(cat(where, ": expected a schedule, a number, a function of the step, or a table with ",
                "schedule, got ", type_text(state, -1)));
  int table = copied_table(state, lua_gettop(state));
  for (const char* rule : {"plateau", "follow"}) {
    if (lua_getfield(state, table, rule) != LUA_TNIL) (*rules)[rule] = to_json(state, -1, where);
    lua_pop(state, 1);
    lua_pushnil(state);
    lua_setfield(state, table, rule);
  }
  lua_getfield(state, table, "schedule");
  std::optional<Schedule> made = live_schedule(state, -1);
  std::string name = lua_type(state, -1) == LUA_TSTRING ? lua_tostring(state, -1) : "";
  lua_pop(state, 1);
  if (!made) {
    if (name.empty()) invalid(cat(where, ": schedule: expected a schedule or its name"));
    std::string id = cxx::full_id(*runtime(state).session, Schedule::kRole, "scheduler", name);
    lua_pushnil(state);
    lua_setfield(state, table, "schedule");
    made.emplace(runtime(state).session, id, to_options(state, table, Schedule::kRole, id, where));
  }
  lua_settop(state, table - 1);
  return std::move(*made);
}

bool has_live_schedules(lua_State* state, int index) {
  bool found = false;
  for (lua_pushnil(state); lua_next(state, index) != 0; lua_pop(state, 1)) {
    found = found || lua_isfunction(state, -1) || lua_isnumber(state, -1) ||
            find_object<Schedule>(state, -1);
    if (!lua_istable(state, -1)) continue;
    lua_getfield(state, -1, "schedule");
    found = found || lua_isfunction(state, -1) || find_object<Schedule>(state, -1);
    lua_pop(state, 1);
  }
  return found;
}

}  // namespace

std::optional<cxx::Component> schedules_of_table(lua_State* state, int index) {
  index = lua_absindex(state, index);
  luaL_checkstack(state, 8, "schedules");
  if (!has_live_schedules(state, index)) return std::nullopt;
  std::map<std::string, bool> names;  // in one order, as Lua's own differs from run to run
  for (lua_pushnil(state); lua_next(state, index) != 0; lua_pop(state, 1))
    names[lua_type(state, -2) == LUA_TSTRING ? lua_tostring(state, -2) : ""] = true;
  if (names.contains("")) invalid("option schedules: expected schedules by name, got a list");
  const SessionPtr& session = runtime(state).session;
  std::optional<cxx::Component> listed;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    Json rules;
    lua_getfield(state, index, name->first.c_str());
    Schedule one = entry_schedule(state, cat("option schedules: ", name->first), &rules);
    lua_pop(state, 1);
    cxx::Options options(session, {{"name", name->first}, {"rules", rules}});
    options.set("schedule", one.component());
    if (listed) options.set("next", *listed);
    listed.emplace(session, Schedule::kRole, "trainer.driven", options);
  }
  return listed;
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
