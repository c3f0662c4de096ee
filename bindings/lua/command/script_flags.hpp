// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a script is given and what it may do, as flags of the commands that run one.

#include "../script/script.hpp"
#include "command.hpp"

namespace tenon::command {

struct ScriptFlags {
  bool trust = false;
  double memory_mib = 4096;
  double seconds = 0, instructions = -1;
  std::vector<std::string> allow, set;

  void add(CLI::App* app) {
    app->add_option("--set", set, "an argument of the script: tn.args.KEY")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    app->add_flag("--trust", trust, "lift the sandbox: processes, native modules, all files");
    app->add_option("--allow", allow, "a further folder whose files the script may use")
        ->type_name("DIR")
        ->allow_extra_args(false);
    app->add_option("--memory", memory_mib, "MiB that Lua may take (tensors excepted)")
        ->check(number_from(1, 1e7))
        ->capture_default_str();
    app->add_option("--instructions", instructions,
                    cat("instructions of Lua that the script may run, e.g. 1e8 (default: ",
                        lua::ScriptLimits().instructions / 1'000'000'000,
                        "e9, about a quarter of a minute; with --trust no limit)"))
        ->check(number_from(1, 1e18));
    app->add_option("--time", seconds, "seconds that the script may run (default: no limit)")
        ->check(number_from(1e-6, 1e8));
  }
  Json args() const { return values_of(set, "--set"); }
  lua::ScriptLimits limits() const {
    lua::ScriptLimits out;
    out.trust = trust;
    out.memory_bytes = static_cast<uint64_t>(memory_mib * 1048576);
    if (trust) out.instructions = 0;
    if (instructions > 0) out.instructions = static_cast<uint64_t>(instructions);
    out.seconds = seconds;
    out.folders = allow;
    return out;
  }
};

}  // namespace tenon::command
