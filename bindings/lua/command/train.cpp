// SPDX-License-Identifier: Apache-2.0
// tenon train SCRIPT.lua
#include <filesystem>

#include "commands.hpp"
#include "script_flags.hpp"

namespace tenon::command {

Action declare_train(CLI::App& app, const Tool& tool) {
  struct Flags {
    std::string script, run, resume;
    bool reports_gradients = false;
    ScriptFlags given;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("script", flags->script, "the Lua script, which calls tn.train")
      ->required()
      ->type_name("FILE");
  app.add_option("--run", flags->run, "a new folder for checkpoints and history")->type_name("DIR");
  app.add_option("--resume", flags->resume, "the folder of a run, to go on with it")
      ->type_name("DIR")
      ->excludes("--run");
  app.add_flag(
      "--grad-histogram", flags->reports_gradients,
      "say after each epoch what float16 would make of the gradients, and which loss scale "
      "follows");
  flags->given.add(&app);
  flags->json.add(&app);
  return [flags, &tool] {
    Json args = flags->given.args();
    bool resumes = !flags->resume.empty();
    std::string checkpoint = flags->resume + "/checkpoint.safetensors";
    std::error_code ignored;
    if (resumes && !std::filesystem::exists(checkpoint, ignored))
      throw cxx::Error(TN_NOT_FOUND,
                       cat("--resume: ", flags->resume,
                           ": expected the folder of a run, got none with checkpoint.safetensors"));
    SessionPtr session = tool.open();
    const std::string& run = resumes ? flags->resume : flags->run;
    Json result = flags->json.returned_by([&] {
      return lua::run_script(session, flags->script, args, flags->given.limits(),
                             {run, resumes, flags->reports_gradients});
    });
    if (flags->json.json) print_json(result);
  };
}

}  // namespace tenon::command
