// SPDX-License-Identifier: Apache-2.0
#pragma once
// Each command's file defines one of these: it declares the flags and gives what the command does.

#include "command.hpp"

namespace tenon::command {

Action declare_run(CLI::App& app, const Tool& tool);
Action declare_train(CLI::App& app, const Tool& tool);
Action declare_optimize(CLI::App& app, const Tool& tool);
Action declare_evaluate(CLI::App& app, const Tool& tool);
Action declare_infer(CLI::App& app, const Tool& tool);
Action declare_bench(CLI::App& app, const Tool& tool);
Action declare_compare(CLI::App& app, const Tool& tool);
// Below a table of layers: which implementations were chosen by measured times, and which refused
// some of them and why.
std::string choices_text(const Json& layers);
Action declare_inspect(CLI::App& app, const Tool& tool);
// Of `plugin`, which has commands of its own:
void declare_plugin(CLI::App& app, Tool& tool);
Action declare_plugin_check(CLI::App& app, const Tool& tool);
Action declare_plugin_new(CLI::App& app, const Tool& tool);

}  // namespace tenon::command
