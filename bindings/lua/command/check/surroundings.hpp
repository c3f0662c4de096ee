// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include <sys/types.h>

#include "check.hpp"

namespace tenon::command::check {

// What a plugin must leave as it was.
struct Surroundings {
  std::string folder;
  std::set<std::string> environment;
  std::set<int> files;  // of the standard ones, those that are open
  size_t n_threads = 0;
  std::vector<void*> handlers;  // of signals, from 1
  std::string locale;
  mode_t mask = 0;  // of the permissions of new files

  static Surroundings now();
  // What is different after `library` was loaded, or nothing.
  std::string change(const Surroundings& after, const std::string& library) const;
};

}  // namespace tenon::command::check
