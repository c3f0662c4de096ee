// SPDX-License-Identifier: Apache-2.0
// tenon run PIPELINE.lua
#include "commands.hpp"
#include "script_flags.hpp"

namespace tenon::command {

Action declare_run(CLI::App& app, const Tool& tool) {
  struct Flags {
    std::string script;
    ScriptFlags given;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();  // the app keeps references to what it fills in
  app.add_option("pipeline", flags->script, "the Lua script")->required()->type_name("FILE");
  flags->given.add(&app);
  flags->json.add(&app);
  return [flags, &tool] {
    Json args = flags->given.args();
    SessionPtr session = tool.open();
    Json result = flags->json.returned_by(
        [&] { return lua::run_script(session, flags->script, args, flags->given.limits()); });
    if (flags->json.json) print_json(result);
  };
}

}  // namespace tenon::command
