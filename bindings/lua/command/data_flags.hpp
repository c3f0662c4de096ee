// SPDX-License-Identifier: Apache-2.0
#pragma once
// --data FILE and --data-option KEY=VALUE: a data set, and how its file is read.

#include "command.hpp"

namespace tenon::command {

struct DataFlags {
  std::string path;
  std::vector<std::string> options;

  CLI::Option* add(CLI::App* app, const char* about);
  // The options as the component's schema has them: mean=0.5,0.4,0.3 is a list of numbers there.
  Json values(const cxx::Session& session) const;
  cxx::Dataset open(const SessionPtr& session) const;
  // Runs `work`; a failure that names the data set's options says how they are given.
  void with_advice(const Action& work) const;
};

}  // namespace tenon::command
