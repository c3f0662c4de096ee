// SPDX-License-Identifier: Apache-2.0
// `tenon`: 0 when done, 1 when it failed, 2 when used wrongly, 130 when Ctrl-C stopped it. Errors
// are one line on standard error.
#include <csignal>
#include <cstdio>

#include "tenon/cxx/terminal.hpp"

#include "command.hpp"
#include "terminal.hpp"

namespace {

using namespace tenon::command;

constexpr int kInterrupted = 128 + SIGINT;  // as shells say it

int complain(int code, const std::string& text) {
  leave_terminal();
  tenon::cxx::complain_of("tenon: " + for_users(text));
  return code;
}

// "tenon plugin info", as far as the line named commands.
std::string named(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* command : app.get_subcommands())
    return cat(name, " ", named(*command));
  return name;
}

// What is empty is a variable of the shell that was not set: without this it would be as if the
// option had not been given.
void refuse_empty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.empty()) throw UsageError(cat(option->get_name(), ": expected a value, got ''"));
  for (const CLI::App* command : app.get_subcommands())
    refuse_empty(*command);
}

// Whether all that was printed has arrived: a script's print, and the help, do not ask.
bool printed_all() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

int run(int argc, char** argv) {
  CLI::App app("Tenon makes neural networks smaller and faster.", "tenon");
  Tool tool;
  app.add_option("--plugin-path", tool.plugin_path, "further folders with plugins")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_flag("--safe-mode", tool.safe_mode, "only the plugins installed beside libtenon");
  app.add_flag("-v,--verbose", tool.verbose, "show debug messages");
  app.add_option("--chrome-trace", tool.chrome_trace,
                 "write what happened when, for chrome://tracing or Perfetto")
      ->type_name("FILE.json");
  app.set_version_flag("--version", std::string(tenon::cxx::view(tenon_version())));
  app.fallthrough();
  declare_commands(app, tool);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& thrown) {
    if (thrown.get_exit_code() == 0) return app.exit(thrown);
    std::vector<std::string> unknown = app.remaining(true);
    if (app.get_subcommands().empty() && !unknown.empty())
      return complain(2, cat("expected a command, got '", unknown[0], "' (see tenon --help)"));
    return complain(2, cat(thrown.what(), " (see ", named(app), " --help)"));
  }
  refuse_empty(app);
  tool.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int code = 0;
  try {
    code = run(argc, argv);
  } catch (const UsageError& thrown) {
    return complain(2, thrown.what());
  } catch (const std::bad_alloc&) {
    return complain(1, "out of memory");
  } catch (const std::exception& thrown) {
    return complain(was_interrupted() ? kInterrupted : 1, thrown.what());
  }
  leave_terminal();
  if (!printed_all()) return complain(1, "standard output: cannot be written to");
  return code;
}
