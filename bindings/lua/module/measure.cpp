// SPDX-License-Identifier: Apache-2.0
// tn.evaluate, tn.bench, tn.compare.
#include <algorithm>

#include "tenon/cxx/bench.hpp"
#include "tenon/cxx/evaluate.hpp"

#include "convert.hpp"

namespace tenon::lua {
namespace {

using cxx::Dataset;
using cxx::Model;

// A table with one field taken out of it, so that the rest is plain values.
template <class T>
T* take_object(lua_State* state, int table, const char* key) {
  lua_getfield(state, table, key);
  T* found = find_object<T>(state, -1);
  if (found) {
    lua_pushnil(state);
    lua_setfield(state, table, key);
  }
  return found;  // stays on the stack, which keeps it alive
}

cxx::RunChoice take_run(Given& given, const Json& defaults) {
  cxx::RunChoice run;
  run.backend = given.text("backend", defaults.value("backend", ""));
  run.precision = given.text("precision", defaults.value("precision", ""));
  run.threads = static_cast<int>(given.integer("threads", defaults.value("threads", 0), 4096));
  run.kernels = given.texts("kernels");
  return run;
}
void require_table(lua_State* state, int index, std::string_view function) {
  if (!lua_isnoneornil(state, index) && !lua_istable(state, index))
    bad_argument(state, index, function, "a table of options");
}

// tn.evaluate(model, data, {metric = "accuracy", options = {...}, against = model, ...}): the
// value under the metric's name, its details, and what `tenon evaluate --json` prints.
int evaluate(lua_State* state) {
  Model& model = object_argument<Model>(state, 1, "tn.evaluate");
  Dataset& data = object_argument<Dataset>(state, 2, "tn.evaluate");
  require_table(state, 3, "tn.evaluate");
  int table = copied_table(state, 3);
  cxx::EvaluateChoice choice;
  if (Model* against = take_object<Model>(state, table, "against"))
    choice.against.emplace(against->share());
  Given given(options_table(state, table, "tn.evaluate"), "tn.evaluate");
  choice.metric = given.text("metric", "accuracy");
  choice.metric_options = given.object("options");
  check_paths_within(state, choice.metric_options);
  choice.run = take_run(given, runtime(state).run);
  choice.batch = static_cast<uint64_t>(given.integer("batch", 0));
  choice.limit = static_cast<uint64_t>(given.integer("limit", 0));
  given.finish();
  Json result = cxx::evaluate(model, data, choice);
  Json details = result["details"];
  for (const auto& [key, value] : details.items())
    if (!result.contains(key)) result[key] = value;
  std::string id = result["metric"];
  result[id.substr(id.rfind('.') + 1)] = result["value"];
  push_json(state, result);
  return 1;
}

void take_sample(lua_State* state, int table, cxx::SampleChoice& sample) {
  lua_getfield(state, table, "inputs");
  if (!lua_isnil(state, -1) && !lua_istable(state, -1))
    invalid(cat("tn.bench: option inputs: expected tensors by name, got ", type_text(state, -1)));
  if (lua_istable(state, -1)) {
    int inputs = lua_gettop(state);
    lua_pushnil(state);
    while (lua_next(state, inputs)) {
      if (lua_type(state, -2) != LUA_TSTRING)
        invalid("tn.bench: option inputs: expected tensors by name, got a list");
      std::string name = lua_tostring(state, -2);
      auto* tensor = find_object<cxx::Tensor>(state, -1);
      if (!tensor)
        invalid(cat("tn.bench: option inputs: ", name, ": expected a tenon.tensor, got ",
                    type_text(state, -1)));
      sample.given[name] = *tensor;
      lua_pop(state, 1);
    }
  }
  lua_pushnil(state);
  lua_setfield(state, table, "inputs");
}

// tn.bench(model, {precision = "int8", shapes = {x = {1, 3, 224, 224}}, inputs = {...}, ...})
int bench(lua_State* state) {
  Model& model = object_argument<Model>(state, 1, "tn.bench");
  require_table(state, 2, "tn.bench");
  int table = copied_table(state, 2);
  cxx::BenchChoice choice;
  take_sample(state, table, choice.sample);
  Given given(options_table(state, table, "tn.bench"), "tn.bench");
  choice.run = take_run(given, runtime(state).run);
  choice.rounds = static_cast<int>(given.integer("rounds", 0, 1'000'000));
  if (Json seconds = given.take("seconds"); !seconds.is_null()) {
    if (!seconds.is_number() || !(seconds.get<double>() > 0))
      invalid(cat("tn.bench: option seconds: expected a number above 0, got ", cxx::dump(seconds)));
    choice.seconds = seconds;
  }
  choice.streams = static_cast<int>(given.integer("streams", 1, 1024));
  if (choice.streams < 1) invalid("tn.bench: option streams: expected 1 to 1024, got 0");
  choice.layers = given.truth("layers", false);
  const Json shapes = given.object("shapes");
  for (const auto& [name, dims] : shapes.items()) {
    auto is_size = [](const Json& dim) {
      return dim.is_number_integer() && dim.get<int64_t>() >= 0;
    };
    if (!dims.empty() && !(dims.is_array() && std::ranges::all_of(dims, is_size)))
      invalid(cat("tn.bench: option shapes: ", name, ": expected a list of sizes, got ",
                  cxx::dump(dims)));
    for (const Json& dim : dims)
      choice.sample.shapes[name].push_back(dim);
    choice.sample.shapes.try_emplace(name);
  }
  given.finish();
  Json result = cxx::bench(model, choice);
  for (const char* key : {"median", "min", "p90"})
    result[cat(key, "_ms")] = result["latency_ms"][key];
  push_json(state, result);
  return 1;
}

// tn.compare(a, b, data, {limit = 64, layers = false, mask = "attention_mask"})
int compare(lua_State* state) {
  Model& a = object_argument<Model>(state, 1, "tn.compare");
  Model& b = object_argument<Model>(state, 2, "tn.compare");
  Dataset& data = object_argument<Dataset>(state, 3, "tn.compare");
  Given given(options_table(state, 4, "tn.compare"), "tn.compare");
  cxx::CompareChoice choice;
  choice.run = choice.other_run = take_run(given, runtime(state).run);
  choice.batch = static_cast<uint64_t>(given.integer("batch", 0));
  choice.limit = static_cast<uint64_t>(given.integer("limit", 64));
  choice.layers = given.truth("layers", true);
  choice.mask = given.text("mask", "");
  given.finish();
  push_json(state, cxx::compare(a, b, data, choice));
  return 1;
}

constexpr Function kFunctions[] = {
    {"evaluate", guarded<evaluate>},
    {"bench", guarded<bench>},
    {"compare", guarded<compare>},
};

}  // namespace

const std::span<const Function> kMeasureFunctions = kFunctions;

}  // namespace tenon::lua
