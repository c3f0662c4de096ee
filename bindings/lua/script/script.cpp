// SPDX-License-Identifier: Apache-2.0
#include "script.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "../module/convert.hpp"
#include "sandbox.hpp"
#include "watchdog.hpp"

namespace tenon::lua {
namespace {

namespace fs = std::filesystem;

// What the allocator and the hook of a state see.
struct Watch {
  SessionPtr session;
  uint64_t limit = 0;
  uint64_t used = 0;
  uint64_t instructions = 0;  // run so far
  uint64_t most_instructions = 0;
  Watchdog* dog = nullptr;
};

void* allocate(void* arg, void* old, size_t old_bytes, size_t bytes) {
  auto& watch = *static_cast<Watch*>(arg);
  if (!old) old_bytes = 0;  // then it is the kind of object
  if (bytes == 0) {
    std::free(old);
    watch.used -= old_bytes;
    return nullptr;
  }
  if (bytes > old_bytes && watch.used + (bytes - old_bytes) > watch.limit) return nullptr;
  void* made = std::realloc(old, bytes);
  if (made) watch.used += bytes - old_bytes;
  return made;
}

Watch& watch_of(lua_State* state) {
  void* arg = nullptr;
  lua_getallocf(state, &arg);
  return *static_cast<Watch*>(arg);
}

constexpr int kInstructionsBetweenLooks = 10'000;
constexpr int kBeforeFirstLook = 16;  // in a coroutine
constexpr const char* kCancelled = "cancelled";

// Why the script must stop; empty while it may go on.
std::string reason_to_stop(const Watch& watch) {
  if (watch.dog->is_late()) return watch.dog->why_late();  // which cancels as well
  if (watch.session->stopping->requested(watch.session->cancel())) return kCancelled;
  if (watch.most_instructions && watch.instructions > watch.most_instructions)
    return cat("stopped: the script may run ", watch.most_instructions,
               " instructions of Lua: an endless loop? (--instructions)");
  return "";
}

// Once a limit is hit each further instruction raises it again, so that a pcall in a loop does not
// keep the script alive. Coroutines inherit the hook. What one executes behind its last look is not
// counted: the looks of a new one are as far apart as all before them, so that it is less than
// half.
void look(lua_State* state, lua_Debug*) {
  Watch& watch = watch_of(state);
  const int step = lua_gethookcount(state);
  watch.instructions += static_cast<uint64_t>(step);
  std::string reason = reason_to_stop(watch);
  if (reason.empty()) {
    if (step < kInstructionsBetweenLooks)
      lua_sethook(state, look, LUA_MASKCOUNT, std::min(2 * step, kInstructionsBetweenLooks));
    return;
  }
  if (reason != kCancelled) watch.dog->expect_end(reason);
  lua_rawgeti(state, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  lua_State* main = lua_tothread(state, -1);
  lua_pop(state, 1);
  lua_sethook(main, look, LUA_MASKCOUNT, 1);
  lua_sethook(state, look, LUA_MASKCOUNT, 1);
  luaL_where(state, 0);
  lua_pushlstring(state, reason.data(), reason.size());
  lua_concat(state, 2);
  lua_error(state);
}

// Upvalue: coroutine.create, or coroutine.wrap, whose result has the coroutine as its upvalue.
int made_coroutine(lua_State* state) {
  luaL_checktype(state, 1, LUA_TFUNCTION);
  lua_settop(state, 1);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, 1, 1);
  if (lua_isthread(state, 1)) {
    lua_pushvalue(state, 1);
  } else {
    lua_getupvalue(state, 1, 1);
  }
  int step = std::min(lua_gethookcount(state), kBeforeFirstLook);  // 1 where a limit has been hit
  lua_sethook(lua_tothread(state, -1), look, LUA_MASKCOUNT, step);
  lua_settop(state, 1);
  return 1;
}
void count_in_coroutines(lua_State* state) {
  lua_getglobal(state, "coroutine");
  for (const char* name : {"create", "wrap"}) {
    lua_getfield(state, -1, name);
    lua_pushcclosure(state, made_coroutine, 1);
    lua_setfield(state, -2, name);
  }
  lua_pop(state, 1);
}

// Opens what the script sees, runs it, leaves its first result. Runs protected.
struct Job {
  const std::string* path;
  const ScriptLimits* limits;
  std::string folder;
  Json result;
};
int run_job(lua_State* state) {
  auto& job = *static_cast<Job*>(lua_touserdata(state, 1));
  lua_settop(state, 0);
  if (job.limits->trust) {
    open_trusted(state, job.folder.c_str());
  } else {
    open_sandboxed(state, job.folder.c_str());
  }
  count_in_coroutines(state);
  luaL_getsubtable(state, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(state, guarded<open_module>);
  lua_setfield(state, -2, "tenon");
  lua_settop(state, 0);
  // The name that errors start with is the one that the user typed.
  if (luaL_loadfilex(state, job.path->c_str(), "t") != LUA_OK) return lua_error(state);
  lua_call(state, 0, 1);
  if (!lua_isnil(state, -1)) job.result = to_json(state, -1, "the script's result");
  return 0;
}

// Runs protected: an error may be anything, and its __tostring may fail in turn.
int say_error(lua_State* state) {
  bool says = lua_isstring(state, 1) || luaL_getmetafield(state, 1, "__tostring") != LUA_TNIL;
  lua_settop(state, 1);
  if (says) {
    luaL_tolstring(state, 1, nullptr);
  } else {
    lua_pushfstring(state, "error(): expected a text, got %s", luaL_typename(state, 1));
  }
  return 1;
}

std::string failure_of(lua_State* state, int status, const Watch& watch) {
  if (status == LUA_ERRMEM) {
    char mib[32];
    std::snprintf(mib, sizeof mib, "%.6g", static_cast<double>(watch.limit) / 1048576);
    return cat("out of memory: the script may use ", mib, " MiB (--memory)");
  }
  lua_pushcfunction(state, say_error);
  lua_insert(state, -2);
  if (lua_pcall(state, 1, 1, 0) != LUA_OK || !lua_isstring(state, -1))
    return "error(): expected a text, got a value whose __tostring fails";
  size_t length = 0;
  const char* text = lua_tolstring(state, -1, &length);
  std::string message(text, length);
  for (char& c : message)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return message;
}

// Those that texts name, in lists and objects too.
void allow_files_of(const Json& args, PathRules& paths) {
  for (const Json& value : args) {
    if (value.is_structured()) allow_files_of(value, paths);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) continue;
    std::error_code ignored;
    fs::path path = value.get<std::string>();
    if (fs::is_directory(path, ignored)) {
      paths.allow_folder(path);
    } else {
      paths.allow_file(path);
    }
  }
}

}  // namespace

Json run_script(const SessionPtr& session,
                const std::string& path,
                const Json& args,
                const ScriptLimits& limits,
                const TrainingRun& training) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    throw Error(TN_NOT_FOUND, cat(path, ": expected a Lua script, got ",
                                  fs::is_directory(path, ignored) ? "a folder"
                                  : fs::exists(path, ignored)     ? "a device or pipe"
                                                                  : "no such file"));
  Watch watch{
      .session = session, .limit = limits.memory_bytes, .most_instructions = limits.instructions};
  Watchdog dog(session, path, limits.seconds);  // before the state: it watches its end as well
  watch.dog = &dog;
  std::unique_ptr<lua_State, void (*)(lua_State*)> state(lua_newstate(allocate, &watch), lua_close);
  if (!state) throw Error(TN_RESOURCE_EXHAUSTED, "out of memory: no Lua state (--memory)");

  Runtime made;
  made.session = session;
  made.args = args;
  made.run_folder = training.folder;
  made.resumes = training.resumes;
  made.reports_gradients = training.reports_gradients;
  if (!training.folder.empty()) made.paths.allow_folder(training.folder);
  Job job{&path, &limits, fs::absolute(path).parent_path().string(), nullptr};
  if (limits.trust) made.paths.trust();
  made.paths.allow_folder(fs::current_path(ignored));
  made.paths.allow_folder(job.folder);
  for (const std::string& folder : limits.folders)
    made.paths.allow_folder(folder);
  allow_files_of(args, made.paths);

  set_runtime(state.get(), std::move(made));
  lua_sethook(state.get(), look, LUA_MASKCOUNT, kInstructionsBetweenLooks);
  lua_pushcfunction(state.get(), guarded<run_job>);
  lua_pushlightuserdata(state.get(), &job);
  int status = lua_pcall(state.get(), 1, 0, 0);
  bool late = dog.is_late();
  if (status == LUA_OK && !late) return job.result;
  if (status == LUA_OK) throw Error(TN_CANCELLED, cat(path, ": ", dog.why_late()));
  std::string message = failure_of(state.get(), status, watch);
  // What was cancelled for it does not know why.
  if (late && message.find("--time") == std::string::npos) message += cat("; ", dog.why_late());
  throw Error(TN_UNKNOWN, status == LUA_ERRMEM ? cat(path, ": ", message) : message);
}

}  // namespace tenon::lua
