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
    {"plugin", "list and check plugins", declare_plugin},
};

}  // namespace

void declare_commands(CLI::App& app, Tool& tool) {
  for (const Row& row : kCommands)
    row.declare(*app.add_subcommand(row.name, row.summary), tool);
}

}  // namespace tenon::command
