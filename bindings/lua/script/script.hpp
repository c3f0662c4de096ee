// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs one pipeline in a Lua state of its own, within limits.

#include "../module/runtime.hpp"

namespace tenon::lua {

// What the command says of the script's trainings: where they keep their runs, whether they go on
// with what is there, and whether they report what float16 would make of their gradients.
struct TrainingRun {
  std::string folder;
  bool resumes = false;
  bool reports_gradients = false;
};

struct ScriptLimits {
  bool trust = false;
  uint64_t memory_bytes = uint64_t{4} << 30;  // of Lua's own objects; tensors live outside
  uint64_t instructions = 4'000'000'000;      // of Lua, not of what it calls; 0: no limit
  double seconds = 0;                         // 0: no limit
  std::vector<std::string> folders;           // besides the working and the script's folder
};

// args become tn.args; the files that they name may be used. Gives what the script returns, as
// JSON; throws with file and line.
Json run_script(const SessionPtr& session,
                const std::string& path,
                const Json& args,
                const ScriptLimits& limits,
                const TrainingRun& training = {});

}  // namespace tenon::lua
