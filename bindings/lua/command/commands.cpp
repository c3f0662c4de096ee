// SPDX-License-Identifier: Apache-2.0
// The table of commands.
#include "commands.hpp"

namespace tenon::command {
namespace {

constexpr Row kCommands[] = {
    {"run", "run a pipeline", declare_run},
    {"train", "run a training, with checkpoints", declare_train},
    {"optimize", "make a model smaller and faster by a recipe", declare_optimize},
    {"evaluate", "measure a model on a data set", declare_evaluate},
    {"infer", "run a model on arrays in files", declare_infer},
    {"bench", "time a model", declare_bench},
    {"compare", "compare two models layer by layer", declare_compare},
    {"inspect", "show what a model is made of", declare_inspect},
};

}  // namespace

void declare_rows(CLI::App& app, std::span<const Row> rows, Tool& tool) {
  app.require_subcommand(1);
  for (const Row& row : rows) {
    CLI::App& command = *app.add_subcommand(row.name, row.summary);
    command.callback([&tool, action = row.declare(command, tool)] { tool.action = action; });
  }
}

void declare_commands(CLI::App& app, Tool& tool) {
  declare_rows(app, kCommands, tool);
  declare_plugin(*app.add_subcommand("plugin", "list and check plugins"), tool);
}

}  // namespace tenon::command
