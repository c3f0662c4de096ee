// SPDX-License-Identifier: Apache-2.0
// tn.load and the methods of a model.
#include "convert.hpp"

namespace tenon::lua {
namespace {

using cxx::Model;

int load(lua_State* state) {
  std::string path = path_argument(state, 1, "tn.load");
  Json options = options_table(state, 2, "tn.load");
  push_model(state, Model::load(runtime(state).session, path, options));
  return 1;
}

int apply(lua_State* state) {
  Model& model = object_argument<Model>(state, 1, "model:apply");
  std::string pass = text_argument(state, 2, "model:apply");
  cxx::Options options = to_options(state, 3, "tenon.pass/1", pass, "model:apply");
  Json report;
  push_model(state, model.apply(pass, options, &report));
  push_json(state, report);  // a second result: local small, report = model:apply(...)
  return 2;
}

int save(lua_State* state) {
  Model& model = object_argument<Model>(state, 1, "model:save");
  std::string path = path_argument(state, 2, "model:save");
  model.save(path, options_table(state, 3, "model:save"));
  lua_settop(state, 1);
  return 1;
}

// model:compile(options [, plan]): with the options and the states of that plan.
int compile(lua_State* state) {
  Model& model = object_argument<Model>(state, 1, "model:compile");
  if (!lua_isnoneornil(state, 3)) {
    push_object(state, object_argument<cxx::Plan>(state, 3, "model:compile").beside(model));
    return 1;
  }
  Json options = options_table(state, 2, "model:compile");
  Json given = runtime(state).run;
  given.update(options);
  cxx::RunChoice choice;
  if (given.contains("backend") && given["backend"].is_string()) choice.backend = given["backend"];
  Json all = cxx::compile_options(*model.session(), choice);
  for (const auto& [key, value] : given.items())
    all[key] = value;
  push_object(state, cxx::Plan(model, all));
  return 1;
}

int inspect(lua_State* state) {
  push_json(state, object_argument<Model>(state, 1, "model:inspect").inspect());
  return 1;
}
int bytes(lua_State* state) {
  uint64_t held = object_argument<Model>(state, 1, "model:bytes").bytes();
  lua_pushinteger(state, static_cast<lua_Integer>(held));
  return 1;
}
int text(lua_State* state) {
  lua_pushstring(state, object_argument<Model>(state, 1, "model:text").text().c_str());
  return 1;
}
int diff(lua_State* state) {
  Model& before = object_argument<Model>(state, 1, "model:diff");
  Model& after = object_argument<Model>(state, 2, "model:diff");
  lua_pushstring(state, before.diff(after).c_str());
  return 1;
}
int to_string(lua_State* state) {
  Model& model = object_argument<Model>(state, 1, "model");
  std::string ports;
  for (const cxx::Port& port : model.inputs())
    ports += cat(ports.empty() ? "" : ", ", port.name, " ", port.text());
  lua_pushstring(state, cat("tenon.model(", ports, ")").c_str());
  return 1;
}

// model:parameters([patterns]): what tn.train would train, by name
int parameters(lua_State* state) {
  Model& model = object_argument<Model>(state, 1, "model:parameters");
  Json patterns = lua_isnoneornil(state, 2) ? Json::array() : to_json(state, 2, "model:parameters");
  cxx::Options options(model.session(), {{"parameters", patterns}});
  Json report;
  Model form = model.apply("trainer.functional", options, &report);
  std::map<std::string, cxx::Tensor> constants = model.constants();
  lua_newtable(state);
  for (const std::string name : report["parameters"]) {
    push_object(state, constants.at(name));
    lua_setfield(state, -2, name.c_str());
  }
  return 1;
}

constexpr Function kMethods[] = {
    {"apply", guarded<apply>},
    {"bytes", guarded<bytes>},
    {"compile", guarded<compile>},
    {"diff", guarded<diff>},
    {"save", guarded<save>},
    {"inspect", guarded<inspect>},
    {"text", guarded<text>},
    {"parameters", guarded<parameters>},
    {"__tostring", guarded<to_string>},
};
constexpr Function kFunctions[] = {{"load", guarded<load>}};

}  // namespace

const std::span<const Function> kModelFunctions = kFunctions;

void register_model(lua_State* state) {
  register_object<Model>(state, kMethods);
}

void push_model(lua_State* state, Model model) {
  lua_gc(state, LUA_GCCOLLECT);
  push_object(state, std::move(model));
}

}  // namespace tenon::lua
