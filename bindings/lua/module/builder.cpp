// SPDX-License-Identifier: Apache-2.0
// What trace.lua builds graphs with: a graph under construction, and where the script is.
#include "tenon/cxx/builder.hpp"

#include <cstring>

#include "tenon/arrays/graph.hpp"

#include "convert.hpp"
#include "trace_source.hpp"

namespace tenon::lua {

namespace {

using cxx::Builder;
using cxx::Tensor;

// A graph under construction, and the array functions over it.
struct Tracing {
  explicit Tracing(const cxx::SessionPtr& session)
      : builder(session), arrays(*session, builder.edit()) {}
  Builder builder;
  arrays::Graph arrays;
};

}  // namespace

template <>
inline constexpr const char* kObjectName<Tracing> = "tenon.builder";

namespace {

Tracing& tracing(lua_State* state) {
  return object_argument<Tracing>(state, 1, "builder");
}
Builder& self(lua_State* state) {
  return tracing(state).builder;
}
tn_value_id value_argument(lua_State* state, int index) {
  return static_cast<tn_value_id>(integer_argument(state, index, "builder"));
}
Json list_argument(lua_State* state, int index) {
  Json list = to_json(state, index, "builder");
  return list.empty() ? Json::array() : list;  // an empty table is an object to JSON
}
std::vector<int64_t> ints_argument(lua_State* state, int index) {
  return list_argument(state, index).get<std::vector<int64_t>>();
}
std::vector<tn_value_id> values_argument(lua_State* state, int index) {
  std::vector<tn_value_id> values;
  for (int64_t id : ints_argument(state, index))
    values.push_back(static_cast<tn_value_id>(id));
  return values;
}
int push_values(lua_State* state, const std::vector<tn_value_id>& values) {
  lua_createtable(state, static_cast<int>(values.size()), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    lua_pushinteger(state, static_cast<lua_Integer>(values[i]));
    lua_rawseti(state, -2, static_cast<lua_Integer>(i + 1));
  }
  return 1;
}
int push_value(lua_State* state, tn_value_id value) {
  lua_pushinteger(state, static_cast<lua_Integer>(value));
  return 1;
}

int create(lua_State* state) {
  push_object(state, Tracing(runtime(state).session));
  return 1;
}
// builder:input(name, dtype, dims); a size that is known at run time is a name
int input(lua_State* state) {
  std::string name = text_argument(state, 2, "builder");
  uint32_t dtype = cxx::dtype_of(text_argument(state, 3, "builder"));
  return push_value(state, self(state).input(name, dtype, list_argument(state, 4)));
}
// builder:constant(tensor [, name])
int constant(lua_State* state) {
  std::string name = lua_isnoneornil(state, 3) ? "constant" : text_argument(state, 3, "builder");
  return push_value(state,
                    self(state).constant(object_argument<Tensor>(state, 2, "builder"), name));
}
// builder:number(x, dtype): a scalar; builder:integers(list): a vector of int64.
int number(lua_State* state) {
  uint32_t dtype = cxx::dtype_of(text_argument(state, 3, "builder"));
  return push_value(state, tracing(state).arrays.number(to_json(state, 2, "builder"), dtype).id);
}
int integers(lua_State* state) {
  return push_value(state, tracing(state).arrays.integers(ints_argument(state, 2)).id);
}
// builder:call(name, named, ...): the values of an array function.
int call(lua_State* state) {
  Json positional = Json::array();
  for (int i = 4; i <= lua_gettop(state); ++i)
    positional.push_back(to_json(state, i, "builder"));
  return push_values(state,
                     tracing(state).arrays.call(text_argument(state, 2, "builder"), positional,
                                                options_table(state, 3, "builder")));
}
// builder:node(op, inputs, n_outputs, attributes, domain, bodies); bodies: models by name
int node(lua_State* state) {
  std::string op = text_argument(state, 2, "builder");
  std::vector<tn_value_id> inputs = values_argument(state, 3);
  auto n_outputs = static_cast<uint64_t>(integer_argument(state, 4, "builder"));
  Json attributes = options_table(state, 5, "builder");
  std::string domain = lua_isnoneornil(state, 6) ? "" : text_argument(state, 6, "builder");
  std::vector<std::pair<std::string, cxx::Model>> bodies;
  if (lua_istable(state, 7)) {
    for (lua_pushnil(state); lua_next(state, 7) != 0; lua_pop(state, 1))
      bodies.emplace_back(text_argument(state, -2, "builder"),
                          object_argument<cxx::Model>(state, -1, "builder").share());
  }
  return push_values(state, self(state).node(domain, op, inputs, n_outputs, attributes, bodies));
}
// builder:layer(layer, name, seed, inputs, n_outputs)
int layer(lua_State* state) {
  auto& component = object_argument<cxx::Component>(state, 2, "builder");
  std::string name = text_argument(state, 3, "builder");
  auto seed = static_cast<uint64_t>(integer_argument(state, 4, "builder"));
  std::vector<tn_value_id> inputs = values_argument(state, 5);
  auto n_outputs = static_cast<uint64_t>(integer_argument(state, 6, "builder"));
  return push_values(state, self(state).layer(component, name, seed, inputs, n_outputs));
}
// native.component(role, id, options)
int component(lua_State* state) {
  std::string role = text_argument(state, 1, "component"),
              id = text_argument(state, 2, "component");
  cxx::Options options = to_options(state, 3, role, id, id);
  push_object(state, cxx::Component(runtime(state).session, role, id, options));
  return 1;
}
// dtype, dims; -1 where a size is not known
int type(lua_State* state) {
  cxx::Port port = self(state).type_of(value_argument(state, 2));
  lua_pushstring(state, cxx::dtype_name(port.dtype).c_str());
  push_json(state, Json(port.dims));
  return 2;
}
int output(lua_State* state) {
  self(state).output(text_argument(state, 2, "builder"), value_argument(state, 3));
  return 0;
}
int splice(lua_State* state) {
  auto& model = object_argument<cxx::Model>(state, 2, "builder");
  return push_values(state, self(state).splice(model, values_argument(state, 3)));
}
// builder:add_function(name, body, gradient): false where there is one of this name
int add_function(lua_State* state) {
  auto& body = object_argument<cxx::Model>(state, 3, "builder");
  auto& gradient = object_argument<cxx::Model>(state, 4, "builder");
  lua_pushboolean(state,
                  self(state).add_function(text_argument(state, 2, "builder"), body, gradient));
  return 1;
}
int build(lua_State* state) {
  push_object(state, self(state).build());
  return 1;
}
// The table of array functions.
int array_functions(lua_State* state) {
  push_json(state, arrays::description());
  return 1;
}
int where(lua_State* state) {
  push_users_line(state);
  return 1;
}
int kind(lua_State* state) {
  const char* name = find_object<Tensor>(state, 1)       ? "tensor"
                     : find_object<cxx::Model>(state, 1) ? "model"
                                                         : luaL_typename(state, 1);
  lua_pushstring(state, name);
  return 1;
}

// native.operators(table [, "model"]): metamethods of tensors, or of models, by name.
int operators(lua_State* state) {
  if (!lua_istable(state, 1)) bad_argument(state, 1, "operators", "a table");
  bool of_models = lua_isstring(state, 2);
  lua_settop(state, 1);
  luaL_getmetatable(state, of_models ? kObjectName<cxx::Model> : kObjectName<Tensor>);
  for (lua_pushnil(state); lua_next(state, 1) != 0;) {
    lua_pushvalue(state, -2);  // metatable, name, function, name
    lua_insert(state, -2);
    lua_rawset(state, 2);
  }
  return 0;
}

constexpr Function kMethods[] = {
    {"input", guarded<input>},   {"constant", guarded<constant>},
    {"number", guarded<number>}, {"integers", guarded<integers>},
    {"call", guarded<call>},     {"node", guarded<node>},
    {"type", guarded<type>},     {"output", guarded<output>},
    {"splice", guarded<splice>}, {"build", guarded<build>},
    {"layer", guarded<layer>},   {"add_function", guarded<add_function>},
};
// (names, given): what a message says of a name that is none of these.
int expected_one_of(lua_State* state) {
  const std::string given = text_argument(state, 2, "expected_one_of");
  std::vector<std::string> names;
  if (!lua_istable(state, 1)) bad_argument(state, 1, "expected_one_of", "a list of names");
  for (lua_Unsigned i = 1, n = lua_rawlen(state, 1); i <= n; ++i) {
    if (lua_rawgeti(state, 1, static_cast<lua_Integer>(i)) != LUA_TSTRING)
      bad_argument(state, 1, "expected_one_of", "a list of names");
    names.emplace_back(lua_tostring(state, -1));
    lua_pop(state, 1);
  }
  lua_pushstring(state, cxx::expected_one_of(names, given).c_str());
  return 1;
}

// A list of nothing, which a table of nothing is not in JSON.
int list(lua_State* state) {
  push_json(state, Json::array());
  return 1;
}

constexpr Function kNative[] = {
    {"builder", guarded<create>},
    {"array_functions", guarded<array_functions>},
    {"where", guarded<where>},
    {"kind", guarded<kind>},
    {"operators", guarded<operators>},
    {"component", guarded<component>},
    {"expected_one_of", guarded<expected_one_of>},
    {"list", guarded<list>},
};

}  // namespace

void push_users_line(lua_State* state) {
  lua_Debug seen{};
  for (int level = 1; lua_getstack(state, level, &seen); ++level) {
    lua_getinfo(state, "Sl", &seen);
    if (seen.currentline <= 0 || std::string_view(seen.source) == kTraceChunk) continue;
    lua_pushfstring(state, "%s:%d: ", seen.short_src, seen.currentline);
    return;
  }
  lua_pushstring(state, "");
}

// With `tn` on the stack: runs trace.lua with it and the native functions.
void add_traced_functions(lua_State* state) {
  register_object<Tracing>(state, kMethods);
  if (luaL_loadbufferx(state, kTraceSource, sizeof kTraceSource - 1, kTraceChunk, "t") != LUA_OK)
    lua_error(state);
  lua_pushvalue(state, -2);
  lua_newtable(state);
  for (const Function& function : kNative) {
    lua_pushcfunction(state, function.call);
    lua_setfield(state, -2, function.name);
  }
  lua_call(state, 2, 0);
}

}  // namespace tenon::lua
