// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long a layer takes, and what takes its place.

#include <string>
#include <vector>

#include "tenon/sdk/run.hpp"

#include "steps.hpp"

namespace tenon::decomposer {

struct Times {
  double before_ms = 0, after_ms = 0;  // the fastest of many runs, taken in turns
  std::string backend;
};

// An error when the sizes of the layer's input are not known or it cannot be run.
Result<Times> measure(tn_ctx* ctx,
                      const Layer& layer,
                      const std::vector<Step>& steps,
                      const std::vector<std::string>& backends,
                      const Cancel& cancel);

}  // namespace tenon::decomposer
