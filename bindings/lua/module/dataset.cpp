// SPDX-License-Identifier: Apache-2.0
// tn.data.NAME(path, options), and the methods of a data set.
#include <cmath>

#include "convert.hpp"

namespace tenon::lua {
namespace {

using cxx::Dataset;

constexpr std::string_view kRole = "tenon.dataset/1";

// The closure has the component's id. (path), (path, options) or (options).
int make(lua_State* state) {
  Runtime& run = runtime(state);
  std::string id = lua_tostring(state, lua_upvalueindex(1));
  bool has_path = lua_type(state, 1) == LUA_TSTRING;
  if (!has_path && !lua_istable(state, 1)) bad_argument(state, 1, id, "a path");
  std::string path = has_path ? path_argument(state, 1, id) : "";
  if (id == "datasets.open") id = cxx::component_for_file(*run.session, kRole, path);
  cxx::Options options = to_options(state, has_path ? 2 : 1, kRole, id, cat("tn.data: ", id));
  if (has_path) {
    Json given{{"path", path}};
    cxx::check(run.session->options->parse(const_cast<tn_options*>(options.get()),
                                           cxx::str(cxx::dump(given))));
  }
  push_object(state, Dataset(run.session, id, options));
  return 1;
}
// tn.data.npz is a function that makes datasets.npz; tn.data["com.acme.x"] works too.
int find(lua_State* state) {
  std::string name = text_argument(state, 2, "tn.data");
  std::string id = name == "open" ? "datasets.open"
                                  : cxx::full_id(*runtime(state).session, kRole, "datasets", name);
  return push_maker<make>(state, id);
}

// data:split(0.8): the first 80 % and the rest; data:split(0.8, seed) after shuffling.
int split(lua_State* state) {
  Dataset& self = object_argument<Dataset>(state, 1, "data:split");
  double share = number_argument(state, 2, "data:split");
  if (!(share > 0 && share < 1))
    invalid(cat("data:split: expected a share between 0 and 1, got ", share));
  Json first{{"to", share}};
  Json second{{"from", share}};
  if (!lua_isnoneornil(state, 3)) {
    first["seed"] = second["seed"] = integer_argument(state, 3, "data:split");
  }
  for (const Json& given : {first, second}) {
    cxx::Options options(self.session(), given);
    options.set("data", self.component());
    push_object(state, Dataset(self.session(), "datasets.subset", options));
  }
  return 2;
}
// data:part(first, count): samples from number `first`, which counts from 1.
int part(lua_State* state) {
  Dataset& self = object_argument<Dataset>(state, 1, "data:part");
  int64_t first = integer_argument(state, 2, "data:part");
  int64_t count = integer_argument(state, 3, "data:part");
  if (first < 1 || count < 1) invalid("data:part: expected a first sample and a count from 1 on");
  push_object(state, self.part(static_cast<uint64_t>(first - 1), static_cast<uint64_t>(count)));
  return 1;
}
int size(lua_State* state) {
  lua_pushinteger(state,
                  static_cast<lua_Integer>(object_argument<Dataset>(state, 1, "#data").size()));
  return 1;
}
int fields(lua_State* state) {
  Dataset& self = object_argument<Dataset>(state, 1, "data:fields");
  Json all = Json::array();
  for (const Dataset::Field& field : self.fields())
    all.push_back({{"name", field.name}, {"dtype", field.dtype}, {"shape", field.shape}});
  push_json(state, all);
  return 1;
}
void push_batch(lua_State* state, const Dataset& data, uint64_t begin, uint64_t end) {
  std::vector<cxx::Tensor> tensors = data.batch(begin, end);
  lua_newtable(state);
  for (size_t i = 0; i < tensors.size(); ++i) {
    push_object(state, std::move(tensors[i]));
    lua_setfield(state, -2, data.fields()[i].name.c_str());
  }
}
// Upvalues: the data set, samples in a batch, the next sample.
int next_batch(lua_State* state) {
  Dataset& data = object_argument<Dataset>(state, lua_upvalueindex(1), "data:batches");
  auto step = static_cast<uint64_t>(lua_tointeger(state, lua_upvalueindex(2)));
  auto begin = static_cast<uint64_t>(lua_tointeger(state, lua_upvalueindex(3)));
  data.session()->stop_if_cancelled();
  uint64_t size = data.size();
  if (begin >= size) return 0;
  uint64_t end = std::min(begin + step, size);
  lua_pushinteger(state, static_cast<lua_Integer>(end));
  lua_replace(state, lua_upvalueindex(3));
  push_batch(state, data, begin, end);
  return 1;
}
// for batch in data:batches(n): tables of tensors by field.
int batches(lua_State* state) {
  object_argument<Dataset>(state, 1, "data:batches");
  int64_t step = integer_argument(state, 2, "data:batches");
  if (step < 1) invalid(cat("data:batches: expected at least 1 sample, got ", step));
  lua_settop(state, 2);
  lua_pushinteger(state, 0);
  lua_pushcclosure(state, guarded<next_batch>, 3);
  return 1;
}
// data:batch(first, last), counted from 1.
int batch(lua_State* state) {
  Dataset& self = object_argument<Dataset>(state, 1, "data:batch");
  int64_t first = integer_argument(state, 2, "data:batch");
  int64_t last = integer_argument(state, 3, "data:batch");
  if (self.size() == 0) invalid("data:batch: the data set has no samples");
  if (first < 1 || last < first || static_cast<uint64_t>(last) > self.size())
    invalid(
        cat("data:batch: expected samples within 1..", self.size(), ", got ", first, "..", last));
  push_batch(state, self, static_cast<uint64_t>(first - 1), static_cast<uint64_t>(last));
  return 1;
}

constexpr Function kMethods[] = {
    {"split", guarded<split>}, {"part", guarded<part>},       {"fields", guarded<fields>},
    {"batch", guarded<batch>}, {"batches", guarded<batches>}, {"size", guarded<size>},
    {"__len", guarded<size>},
};

}  // namespace

// Expects the table `tn` on top of the stack.
void register_dataset(lua_State* state) {
  register_object<Dataset>(state, kMethods);
  lua_newtable(state);
  lua_newtable(state);
  lua_pushcfunction(state, guarded<find>);
  lua_setfield(state, -2, "__index");
  lua_setmetatable(state, -2);
  lua_setfield(state, -2, "data");
}

}  // namespace tenon::lua
