// SPDX-License-Identifier: Apache-2.0
// The table `tn`, from the rows of functions in the files beside this one.
#include "convert.hpp"

namespace tenon::lua {
namespace {

void add(lua_State* state, std::span<const Function> functions) {
  for (const Function& function : functions) {
    lua_pushcfunction(state, function.call);
    lua_setfield(state, -2, function.name);
  }
}

}  // namespace

int open_module(lua_State* state) {
  register_model(state);
  register_plan(state);
  register_tensor(state);
  lua_newtable(state);
  for (std::span<const Function> functions : {kModelFunctions, kTensorFunctions, kMeasureFunctions,
                                              kTextFunctions, kPluginFunctions, kTrainingFunctions})
    add(state, functions);
  lua_newtable(state);
  add(state, kLogFunctions);
  lua_setfield(state, -2, "log");
  register_dataset(state);
  register_schedule(state);
  register_training(state);
  register_callback(state);
  add_traced_functions(state);
  push_json(state, runtime(state).args);
  lua_setfield(state, -2, "args");
  tn_str version = tenon_version();
  lua_pushlstring(state, version.data, version.len);
  lua_setfield(state, -2, "version");
  return 1;
}

}  // namespace tenon::lua
