// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backend's options, as they are when it is opened; a plan may state them anew.

#include <string>
#include <vector>

#include "tenon/sdk/component.hpp"

#include "lowering/lowering.hpp"

namespace tenon::onednn {

struct Settings {
  std::string precision = "fp32";
  std::string winograd = "auto";
  std::string sparse = "auto";
  std::vector<std::string> without;
  int64_t threads = 0;

  static Result<Settings> of(const Options& options);
  // What a plan is compiled with.
  CompileOptions with(const Options& of_the_plan) const;
};

}  // namespace tenon::onednn
