// SPDX-License-Identifier: Apache-2.0
// tn.loss.NAME{options}, tn.optim.NAME{lr = ..., options}, and tn.train(model, options).
#include "tenon/cxx/choice.hpp"

#include "convert.hpp"

namespace tenon::lua {
namespace {

constexpr std::string_view kLoss = "tenon.loss/1";
constexpr std::string_view kOptimizer = "tenon.optimizer/1";

// The component of this role whose id is the name or ends in it: any plugin's, ours first.
std::string id_of(lua_State* state, std::string_view role, std::string_view what) {
  std::string name = text_argument(state, 2, what), found;
  std::vector<std::string> known;
  for (const Json& one : cxx::list_components(*runtime(state).session, role)) {
    std::string id = one["id"];
    std::string word = id.substr(id.rfind('.') + 1);
    known.push_back(word);
    if (id == name || id == cat("trainer.", name)) return id;
    if (word == name && found.empty()) found = id;
  }
  if (!found.empty()) return found;
  throw Error(TN_NOT_FOUND, cat(what, ": ", cxx::expected_one_of(known, name)));
}

// The closure has the component's id.
int make_loss(lua_State* state) {
  std::string id = lua_tostring(state, lua_upvalueindex(1));
  cxx::Options options = to_options(state, 1, kLoss, id, cat("tn.loss: ", id));
  push_object(state, cxx::Component(runtime(state).session, kLoss, id, options));
  return 1;
}

Optimizer::Rate take_rate(lua_State* state, int table, const std::string& where) {
  lua_getfield(state, table, "lr");
  Optimizer::Rate rate;
  if (lua_isfunction(state, -1)) {
    rate.emplace<cxx::Schedule>(schedule_of_function(state, -1));
  } else if (auto* schedule = find_object<cxx::Schedule>(state, -1)) {
    rate.emplace<cxx::Schedule>(schedule->component().share());
  } else if (lua_type(state, -1) == LUA_TNUMBER) {
    rate = lua_tonumber(state, -1);
  } else {
    invalid(cat(where, ": option lr: expected a number, a schedule or a function of the step, got ",
                type_text(state, -1)));
  }
  lua_pop(state, 1);
  lua_pushnil(state);
  lua_setfield(state, table, "lr");
  return rate;
}

int make_optimizer(lua_State* state) {
  std::string id = lua_tostring(state, lua_upvalueindex(1));
  std::string where = cat("tn.optim: ", id);
  if (!lua_istable(state, 1)) bad_argument(state, 1, where, "a table of options");
  int table = copied_table(state, 1);
  Optimizer::Rate rate = take_rate(state, table, where);
  cxx::Options options = to_options(state, table, kOptimizer, id, where);
  push_object(state, Optimizer{{runtime(state).session, kOptimizer, id, options}, std::move(rate)});
  return 1;
}

int find_loss(lua_State* state) {
  return push_maker<make_loss>(state, id_of(state, kLoss, "tn.loss"));
}
int find_optimizer(lua_State* state) {
  return push_maker<make_optimizer>(state, id_of(state, kOptimizer, "tn.optim"));
}

int name_component(lua_State* state) {
  auto& component = object_argument<cxx::Component>(state, 1, "component");
  lua_pushstring(state, cat("tenon.component(", component.id(), ")").c_str());
  return 1;
}
int name_optimizer(lua_State* state) {
  auto& optimizer = object_argument<Optimizer>(state, 1, "optimizer");
  lua_pushstring(state, cat("tenon.optimizer(", optimizer.component.id(), ")").c_str());
  return 1;
}
// optimizer:rate(step [, steps])
int rate_at(lua_State* state) {
  auto& optimizer = object_argument<Optimizer>(state, 1, "optimizer:rate");
  int64_t step = integer_argument(state, 2, "optimizer:rate");
  int64_t steps = lua_isnoneornil(state, 3) ? 0 : integer_argument(state, 3, "optimizer:rate");
  if (step < 0 || steps < 0)
    invalid(cat("optimizer:rate: expected a step from 0 on, got ", std::min(step, steps)));
  const uint64_t total =
      lua_isnoneornil(state, 3) ? TN_STEPS_UNKNOWN : static_cast<uint64_t>(steps);
  auto* schedule = std::get_if<cxx::Schedule>(&optimizer.rate);
  lua_pushnumber(state, schedule ? schedule->value(static_cast<uint64_t>(step), total)
                                 : std::get<double>(optimizer.rate));
  return 1;
}

// Where a training of this script keeps its run, when the command was given a folder: the first one
// there, the next in folders inside.
std::string run_folder(Runtime& run) {
  int number = ++run.trainings;
  if (run.run_folder.empty() || number == 1) return run.run_folder;
  return cat(run.run_folder, "/", number);
}

// tn.train(model, {data = ..., optimizer = tn.optim.adamw{lr = 1e-3}, epochs = 5}): the trained
// model, and the training's report.
int train(lua_State* state) {
  auto& model = object_argument<cxx::Model>(state, 1, "tn.train");
  if (!lua_istable(state, 2)) bad_argument(state, 2, "tn.train", "a table of options");
  int table = copied_table(state, 2);
  Runtime& run = runtime(state);
  std::string folder = run_folder(run);
  if (!folder.empty() && lua_getfield(state, table, "run") == LUA_TNIL) {
    lua_pushstring(state, folder.c_str());
    lua_setfield(state, table, "run");
  }
  if (run.resumes) {
    lua_pushboolean(state, 1);
    lua_setfield(state, table, "resume");
  }
  if (run.reports_gradients) {
    lua_pushboolean(state, 1);
    lua_setfield(state, table, "gradient_histogram");
  }
  cxx::Options options = to_options(state, table, "tenon.pass/1", "trainer.train", "tn.train");
  Json report;
  push_model(state, model.apply("trainer.train", options, &report));
  push_json(state, report);
  return 2;
}

constexpr Function kFunctions[] = {{"train", guarded<train>}};
constexpr Function kComponentMethods[] = {{"__tostring", guarded<name_component>}};
constexpr Function kOptimizerMethods[] = {
    {"rate", guarded<rate_at>},
    {"__tostring", guarded<name_optimizer>},
};

void add_finder(lua_State* state, const char* name, lua_CFunction find) {
  lua_newtable(state);
  lua_newtable(state);
  lua_pushcfunction(state, find);
  lua_setfield(state, -2, "__index");
  lua_setmetatable(state, -2);
  lua_setfield(state, -2, name);
}

}  // namespace

const std::span<const Function> kTrainingFunctions = kFunctions;

// Expects the table `tn` on top of the stack.
void register_training(lua_State* state) {
  register_object<cxx::Component>(state, kComponentMethods);
  register_object<Optimizer>(state, kOptimizerMethods);
  add_finder(state, "loss", guarded<find_loss>);
  add_finder(state, "optim", guarded<find_optimizer>);
}

}  // namespace tenon::lua
