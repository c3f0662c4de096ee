// SPDX-License-Identifier: Apache-2.0
#pragma once
// Each command's file defines one of these.

#include "command.hpp"

namespace tenon::command {

void declare_run(CLI::App& app, Tool& tool);
void declare_train(CLI::App& app, Tool& tool);
void declare_optimize(CLI::App& app, Tool& tool);
void declare_evaluate(CLI::App& app, Tool& tool);
void declare_infer(CLI::App& app, Tool& tool);
void declare_bench(CLI::App& app, Tool& tool);
void declare_compare(CLI::App& app, Tool& tool);
void declare_inspect(CLI::App& app, Tool& tool);
void declare_plugin(CLI::App& app, Tool& tool);
// Of `plugin`:
void declare_plugin_check(CLI::App& app, Tool& tool);
void declare_plugin_new(CLI::App& app, Tool& tool);

}  // namespace tenon::command
