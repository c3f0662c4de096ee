// SPDX-License-Identifier: Apache-2.0
#include "runtime.hpp"

#include <algorithm>
#include <memory>

namespace tenon::lua {
namespace {

namespace fs = std::filesystem;

// Its address is the key in the registry.
constexpr char kRuntimeKey = 0;

fs::path resolved(const fs::path& path) {
  std::error_code failed;
  fs::path found = fs::weakly_canonical(fs::absolute(path), failed);
  return failed ? fs::absolute(path).lexically_normal() : found;
}

int end_runtime(lua_State* state) {
  std::destroy_at(static_cast<Runtime*>(lua_touserdata(state, 1)));
  return 0;
}

}  // namespace

void PathRules::allow_folder(const fs::path& folder) {
  folders_.push_back(resolved(folder));
}
void PathRules::allow_file(const fs::path& file) {
  files_.push_back(resolved(file));
}

void PathRules::check(const std::string& path) const {
  if (trusted_) return;
  if (path.empty()) invalid("expected a path, got ''");
  if (path.find('\0') != std::string::npos) invalid("path: expected text without a zero byte");
  fs::path real = resolved(path);
  if (std::find(files_.begin(), files_.end(), real) != files_.end()) return;
  for (const fs::path& folder : folders_) {
    auto [end, rest] = std::mismatch(folder.begin(), folder.end(), real.begin(), real.end());
    if (end == folder.end() || (std::next(end) == folder.end() && end->empty())) return;
  }
  fs::path folder = real.parent_path();
  throw Error(TN_PERMISSION_DENIED,
              cat(path, ": outside the folders that a pipeline may use; allow it with --allow ",
                  folder.string(), " or lift the sandbox with --trust"));
}

void set_runtime(lua_State* state, Runtime given) {
  void* place = lua_newuserdatauv(state, sizeof(Runtime), 0);
  new (place) Runtime(std::move(given));
  lua_newtable(state);
  lua_pushcfunction(state, end_runtime);
  lua_setfield(state, -2, "__gc");
  lua_setmetatable(state, -2);
  lua_rawsetp(state, LUA_REGISTRYINDEX, &kRuntimeKey);
}

Runtime& runtime(lua_State* state) {
  lua_rawgetp(state, LUA_REGISTRYINDEX, &kRuntimeKey);
  auto* found = static_cast<Runtime*>(lua_touserdata(state, -1));
  lua_pop(state, 1);
  if (!found) throw Error(TN_FAILED_PRECONDITION, "tenon: the state has been closed");
  return *found;
}

std::string path_argument(lua_State* state, int index, std::string_view function) {
  std::string path = text_argument(state, index, function);
  runtime(state).paths.check(path);
  return path;
}

void push_error(lua_State* state, const char* text) {
  push_users_line(state);
  lua_pushstring(state, text);
  lua_concat(state, 2);
}

std::string type_text(lua_State* state, int index) {
  int type = lua_type(state, index);
  if (type == LUA_TNONE) return "nothing";
  if (type == LUA_TUSERDATA && luaL_getmetafield(state, index, "__name") == LUA_TSTRING) {
    std::string name = cat("a ", lua_tostring(state, -1));
    lua_pop(state, 1);
    return name;
  }
  if (type == LUA_TNIL) return "nil";
  return cat("a ", lua_typename(state, type));
}

void bad_argument(lua_State* state,
                  int index,
                  std::string_view function,
                  std::string_view expected) {
  const size_t colon = function.find(':');  // of a method, but not in "tn.loss: trainer.mse"
  const bool is_method = colon != function.npos && function.substr(colon, 2) != ": ";
  int number = is_method ? index - 1 : index;
  invalid(cat(function, ": argument ", number, ": expected ", expected, ", got ",
              type_text(state, index)));
}

std::string text_argument(lua_State* state, int index, std::string_view function) {
  if (lua_type(state, index) != LUA_TSTRING) bad_argument(state, index, function, "a string");
  size_t length = 0;
  const char* data = lua_tolstring(state, index, &length);
  return {data, length};
}

int64_t integer_argument(lua_State* state, int index, std::string_view function) {
  int whole = 0;
  lua_Integer value = lua_tointegerx(state, index, &whole);
  if (!whole || lua_type(state, index) != LUA_TNUMBER)
    bad_argument(state, index, function, "a whole number");
  return value;
}

double number_argument(lua_State* state, int index, std::string_view function) {
  if (lua_type(state, index) != LUA_TNUMBER) bad_argument(state, index, function, "a number");
  return lua_tonumber(state, index);
}

}  // namespace tenon::lua
