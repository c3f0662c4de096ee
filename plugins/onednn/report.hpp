// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a compiled part says of itself, in JSON.

#include <cstdint>
#include <string>
#include <vector>

#include "executable.hpp"

namespace tenon::onednn {

// Sizes and kernels, and each layer: {"name", "op", "kernel", "implementation", "refused":
// [{"implementation", "why"}]}. A layer is the steps of one node that run the same kernel.
std::string described(const Graph& graph,
                      const Executable& executable,
                      const std::string& precision);
// The same layers with "ns", "flops" and "bytes"; step_ns: by step.
std::string profiled(const Plan& plan, const std::vector<uint64_t>& step_ns);

}  // namespace tenon::onednn
