// SPDX-License-Identifier: Apache-2.0
// tenon run PIPELINE.lua
#include "commands.hpp"
#include "script_flags.hpp"

namespace tenon::command {

void declare_run(CLI::App& app, Tool& tool) {
  struct Flags {
    std::string script;
    std::vector<std::string> set;
    ScriptFlags limits;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();  // the app keeps references to what it fills in
  app.add_option("pipeline", flags->script, "the Lua script")->required()->type_name("FILE");
  app.add_option("--set", flags->set, "an argument of the script: tn.args.KEY")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  flags->limits.add(&app);
  flags->json.add(&app);
  app.callback([flags, &tool] {
    tool.action = [flags, &tool] {
      Json args = values_of(flags->set, "--set");
      SessionPtr session = tool.open();
      Json result = lua::run_script(session, flags->script, args, flags->limits.limits());
      if (flags->json.json) print_json(result);
    };
  });
}

}  // namespace tenon::command
