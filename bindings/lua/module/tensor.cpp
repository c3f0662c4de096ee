// SPDX-License-Identifier: Apache-2.0
// tn.tensor, tn.zeros, tn.npy, tn.npz and the methods of a tensor.
#include <algorithm>
#include <cmath>

#include "tenon/cxx/arrays.hpp"

#include "convert.hpp"

namespace tenon::lua {
namespace {

using cxx::Tensor;

// Nested lists as rows: the shape by their first elements, each row of the same length.
void shape_of(const Json& value, std::vector<int64_t>& shape) {
  const Json* level = &value;
  while (level->is_array()) {
    shape.push_back(static_cast<int64_t>(level->size()));
    if (level->empty()) return;
    level = &level->front();
  }
}
// Of whole numbers those without a fraction, which would be left out.
double number_for(uint32_t dtype, double number) {
  if (!cxx::is_float(dtype) && dtype != TN_BOOL && number != std::trunc(number))
    invalid(
        cat("tn.tensor: expected whole numbers for ", cxx::dtype_name(dtype), ", got ", number));
  return number;
}
void fill(const Json& value, std::span<const int64_t> shape, Tensor& out, int64_t& at) {
  if (shape.empty()) {
    if (!value.is_number()) invalid(cat("tn.tensor: expected numbers, got ", cxx::dump(value)));
    if (out.dtype() == TN_I64 && value.is_number_integer())  // doubles do not hold all of them
      static_cast<int64_t*>(out.data())[at++] = value.get<int64_t>();
    else
      out.set(at++, number_for(out.dtype(), value.get<double>()));
    return;
  }
  if (!value.is_array() || static_cast<int64_t>(value.size()) != shape[0])
    invalid(cat("tn.tensor: expected rows of the same length ", shape[0]));
  for (const Json& item : value)
    fill(item, shape.subspan(1), out, at);
}

int tensor(lua_State* state) {
  Json values = to_json(state, 1, "tn.tensor");
  uint32_t dtype =
      lua_isnoneornil(state, 2) ? TN_F32 : cxx::dtype_of(text_argument(state, 2, "tn.tensor"));
  std::vector<int64_t> shape;
  shape_of(values, shape);
  Tensor made = Tensor::zeros(runtime(state).session, dtype, shape);
  int64_t at = 0;
  fill(values, shape, made, at);
  push_object(state, std::move(made));
  return 1;
}
std::vector<int64_t> sizes_argument(lua_State* state, int position, const char* who) {
  if (!lua_istable(state, position) && lua_type(state, position) != LUA_TNUMBER)
    bad_argument(state, position, who, "a list of sizes");
  Json dims = to_json(state, position, who);
  if (dims.is_object() && !dims.empty())
    invalid(cat(who, ": expected a list of sizes, got ", cxx::dump(dims)));
  std::vector<int64_t> shape;
  for (const Json& dim : dims) {
    if (!dim.is_number_integer() || dim.get<int64_t>() < 0)
      invalid(cat(who, ": expected a list of sizes, got ", cxx::dump(dims)));
    shape.push_back(dim);
  }
  return shape;
}
int zeros(lua_State* state) {
  std::vector<int64_t> shape = sizes_argument(state, 1, "tn.zeros");
  uint32_t dtype =
      lua_isnoneornil(state, 2) ? TN_F32 : cxx::dtype_of(text_argument(state, 2, "tn.zeros"));
  push_object(state, Tensor::zeros(runtime(state).session, dtype, shape));
  return 1;
}
// tn.normal(shape [, deviation [, seed]])
int normal(lua_State* state) {
  const cxx::SessionPtr& session = runtime(state).session;
  Tensor made = Tensor::zeros(session, TN_F32, sizes_argument(state, 1, "tn.normal"));
  double deviation = lua_isnoneornil(state, 2) ? 1 : number_argument(state, 2, "tn.normal");
  auto seed = static_cast<uint64_t>(
      lua_isnoneornil(state, 3) ? 0 : integer_argument(state, 3, "tn.normal"));
  std::vector<double> numbers(static_cast<size_t>(made.size()));
  session->random->normal(seed, 0, 0, numbers.data(), numbers.size());
  std::transform(numbers.begin(), numbers.end(), static_cast<float*>(made.data()),
                 [&](double x) { return static_cast<float>(x * deviation); });
  push_object(state, std::move(made));
  return 1;
}
int npy(lua_State* state) {
  std::string path = path_argument(state, 1, "tn.npy");
  push_object(state, cxx::read_array(runtime(state).session, path));
  return 1;
}
int npz(lua_State* state) {
  std::string path = path_argument(state, 1, "tn.npz");
  lua_newtable(state);
  for (cxx::NamedArray& array : cxx::read_arrays(runtime(state).session, path)) {
    push_object(state, std::move(array.tensor));
    lua_setfield(state, -2, array.name.c_str());
  }
  return 1;
}

int save(lua_State* state) {
  Tensor& self = object_argument<Tensor>(state, 1, "tensor:save");
  cxx::write_file(self.session(), path_argument(state, 2, "tensor:save"), cxx::npy_bytes(self));
  lua_settop(state, 1);
  return 1;
}
int shape(lua_State* state) {
  Tensor& self = object_argument<Tensor>(state, 1, "tensor:shape");
  push_json(state, Json(std::vector<int64_t>(self.shape().begin(), self.shape().end())));
  return 1;
}
int dtype(lua_State* state) {
  Tensor& self = object_argument<Tensor>(state, 1, "tensor:dtype");
  lua_pushstring(state, cxx::dtype_name(self.dtype()).c_str());
  return 1;
}
int rows(lua_State* state) {
  Tensor& self = object_argument<Tensor>(state, 1, "tensor:rows");
  int64_t first = integer_argument(state, 2, "tensor:rows");
  int64_t last = integer_argument(state, 3, "tensor:rows");
  const int64_t most = self.shape().empty() ? 0 : self.shape()[0];
  if (self.shape().empty() || first < 1 || last < first - 1 || last > most)
    invalid(cat("tensor:rows: expected rows within 1..", most, ", got ", first, "..", last));
  push_object(state, self.rows(first - 1, last));
  return 1;
}
void push_number(lua_State* state, const Tensor& self, int64_t i) {
  if (!cxx::is_float(self.dtype()) && self.dtype() != TN_U64) {
    int64_t whole = self.dtype() == TN_I64 ? cxx::element<int64_t>(self.data(), i)
                                           : static_cast<int64_t>(self.at(i));
    lua_pushinteger(state, whole);
  } else {
    lua_pushnumber(state, self.at(i));
  }
}
// tensor[i]: element i of all in row-major order, from 1.
int index(lua_State* state) {
  Tensor& self = object_argument<Tensor>(state, 1, "tensor");
  if (lua_type(state, 2) == LUA_TSTRING) {
    luaL_getmetafield(state, 1, "__methods");
    lua_pushvalue(state, 2);
    lua_rawget(state, -2);
    return 1;
  }
  int64_t i = integer_argument(state, 2, "tensor");
  if (i < 1 || i > self.size()) return 0;
  push_number(state, self, i - 1);
  return 1;
}
int size(lua_State* state) {
  lua_pushinteger(state, object_argument<Tensor>(state, 1, "#tensor").size());
  return 1;
}
int values(lua_State* state) {
  Tensor& self = object_argument<Tensor>(state, 1, "tensor:values");
  lua_newtable(state);
  for (int64_t i = 0; i < self.size(); ++i) {
    push_number(state, self, i);
    lua_rawseti(state, -2, i + 1);
  }
  return 1;
}
int to_string(lua_State* state) {
  lua_pushstring(
      state, cat("tenon.tensor(", object_argument<Tensor>(state, 1, "tensor").text(), ")").c_str());
  return 1;
}

constexpr Function kMethods[] = {
    {"save", guarded<save>},  {"shape", guarded<shape>},          {"dtype", guarded<dtype>},
    {"rows", guarded<rows>},  {"values", guarded<values>},        {"__index", guarded<index>},
    {"__len", guarded<size>}, {"__tostring", guarded<to_string>},
};
constexpr Function kFunctions[] = {
    {"tensor", guarded<tensor>}, {"zeros", guarded<zeros>}, {"normal", guarded<normal>},
    {"npy", guarded<npy>},       {"npz", guarded<npz>},
};

}  // namespace

const std::span<const Function> kTensorFunctions = kFunctions;

void register_tensor(lua_State* state) {
  register_object<Tensor>(state, kMethods);
}

}  // namespace tenon::lua
