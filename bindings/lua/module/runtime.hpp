// SPDX-License-Identifier: Apache-2.0
#pragma once
// What functions of the Lua module share: the session, which files a script may touch, and the glue
// between C++ and a Lua state. Functions throw; guarded() turns that into a Lua error with the
// script's file and line.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lua.hpp>

#include "tenon/cxx/session.hpp"

namespace tenon::lua {

using cxx::cat;
using cxx::Error;
using cxx::invalid;
using cxx::Json;
using cxx::SessionPtr;

// The files that a script may open: those in allowed folders, and single allowed files.
class PathRules {
 public:
  void trust() { trusted_ = true; }
  void allow_folder(const std::filesystem::path& folder);
  void allow_file(const std::filesystem::path& file);
  // Throws, naming the path and how to allow it.
  void check(const std::string& path) const;

 private:
  bool trusted_ = false;
  std::vector<std::filesystem::path> folders_;
  std::vector<std::filesystem::path> files_;
};

struct Runtime {
  SessionPtr session;
  PathRules paths;
  Json args = Json::object();      // tn.args
  cxx::Json run = Json::object();  // defaults of compile: backend, precision, threads
  std::string run_folder;          // where trainings keep their runs, when the script does not say
  bool resumes = false;            // they go on with what is there
  bool reports_gradients = false;  // they have gradient_histogram
  int trainings = 0;               // how many there were
  std::shared_ptr<int> alive = std::make_shared<int>(0);  // ends with the state
};

// The runtime is kept in the state's registry and lives as long as the state.
void set_runtime(lua_State* state, Runtime runtime);
Runtime& runtime(lua_State* state);

// A path given by a script, checked.
std::string path_argument(lua_State* state, int index, std::string_view function);

// One function that Lua sees.
struct Function {
  const char* name;
  lua_CFunction call;
};

// Pushes "file:line: " of the innermost line that is not the library's, "" where there is none.
void push_users_line(lua_State* state);
// The same, and the text.
void push_error(lua_State* state, const char* text);

template <int (*Body)(lua_State*)>
int guarded(lua_State* state) {
  // Errors of Lua itself (it may be built as C++) are no std::exception and pass.
  try {
    return Body(state);
  } catch (const std::bad_alloc&) {
    push_error(state, "out of memory");
  } catch (const std::exception& thrown) {
    push_error(state, thrown.what());
  }
  return lua_error(state);
}

// Pushes a function that makes components: `Make` with the component's id as its upvalue.
template <int (*Make)(lua_State*)>
int push_maker(lua_State* state, const std::string& id) {
  lua_pushlstring(state, id.data(), id.size());
  lua_pushcclosure(state, guarded<Make>, 1);
  return 1;
}

// Arguments of a function, with errors that name it.
std::string text_argument(lua_State* state, int index, std::string_view function);
int64_t integer_argument(lua_State* state, int index, std::string_view function);
double number_argument(lua_State* state, int index, std::string_view function);
std::string type_text(lua_State* state, int index);  // "nil", "a table", "a tenon.model"
[[noreturn]] void bad_argument(lua_State* state,
                               int index,
                               std::string_view function,
                               std::string_view expected);

}  // namespace tenon::lua
