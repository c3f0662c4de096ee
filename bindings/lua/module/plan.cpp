// SPDX-License-Identifier: Apache-2.0
// The methods of a plan; calling one runs it.
#include "convert.hpp"

namespace tenon::lua {
namespace {

using cxx::Plan;
using cxx::Tensor;

// plan(x), plan(x, y) in the order of the inputs, or plan{name = x}.
std::vector<Tensor> inputs_of(lua_State* state, const Plan& plan, std::string_view function) {
  std::vector<Tensor> inputs;
  if (lua_gettop(state) == 2 && lua_istable(state, 2)) {
    for (const cxx::Port& port : plan.inputs()) {
      lua_getfield(state, 2, port.name.c_str());
      Tensor* tensor = find_object<Tensor>(state, -1);
      if (!tensor)
        invalid(cat(function, ": input ", port.name, ": expected a tenon.tensor, got ",
                    type_text(state, -1)));
      inputs.push_back(*tensor);
      lua_pop(state, 1);
    }
    return inputs;
  }
  for (int i = 2; i <= lua_gettop(state); ++i)
    inputs.push_back(object_argument<Tensor>(state, i, function));
  return inputs;
}

// Results in order.
int call(lua_State* state) {
  Plan& plan = object_argument<Plan>(state, 1, "plan");
  std::vector<Tensor> results = plan.run(inputs_of(state, plan, "plan:call"));
  luaL_checkstack(state, static_cast<int>(results.size()) + 4, "results");
  for (Tensor& result : results)
    push_object(state, std::move(result));
  return static_cast<int>(results.size());
}
// Results by name.
int run(lua_State* state) {
  Plan& plan = object_argument<Plan>(state, 1, "plan:run");
  std::vector<Tensor> results = plan.run(inputs_of(state, plan, "plan:run"));
  lua_newtable(state);
  for (size_t i = 0; i < results.size(); ++i) {
    push_object(state, std::move(results[i]));
    lua_setfield(state, -2, plan.output_names()[i].c_str());
  }
  return 1;
}
int prepare(lua_State* state) {
  Plan& plan = object_argument<Plan>(state, 1, "plan:prepare");
  plan.prepare(inputs_of(state, plan, "plan:prepare"));
  lua_settop(state, 1);
  return 1;
}
int describe(lua_State* state) {
  push_json(state, object_argument<Plan>(state, 1, "plan:describe").describe());
  return 1;
}
int profile(lua_State* state) {
  Plan& plan = object_argument<Plan>(state, 1, "plan:profile");
  push_json(state, plan.profile(inputs_of(state, plan, "plan:profile")));
  return 1;
}

int get_state(lua_State* state) {
  Plan& plan = object_argument<Plan>(state, 1, "plan:get_state");
  push_object(state, plan.get_state(text_argument(state, 2, "plan:get_state")));
  return 1;
}
int set_state(lua_State* state) {
  Plan& plan = object_argument<Plan>(state, 1, "plan:set_state");
  std::string name = text_argument(state, 2, "plan:set_state");
  plan.set_state(name, object_argument<Tensor>(state, 3, "plan:set_state"));
  lua_settop(state, 1);
  return 1;
}
int states(lua_State* state) {
  Json names = Json::array();
  for (const cxx::Port& port : object_argument<Plan>(state, 1, "plan:states").states())
    names.push_back(port.name);
  push_json(state, names);
  return 1;
}

constexpr Function kMethods[] = {
    {"get_state", guarded<get_state>},
    {"set_state", guarded<set_state>},
    {"states", guarded<states>},
    {"__call", guarded<call>},
    {"run", guarded<run>},
    {"prepare", guarded<prepare>},
    {"describe", guarded<describe>},
    {"profile", guarded<profile>},
};

}  // namespace

void register_plan(lua_State* state) {
  register_object<Plan>(state, kMethods);
}

}  // namespace tenon::lua
