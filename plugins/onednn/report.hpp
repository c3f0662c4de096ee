// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a compiled part says of itself, in JSON.

#include <cstdint>
#include <string>
#include <vector>

#include "executable.hpp"

namespace tenon::onednn {

// Sizes and kernels, and each layer: {"name", "op", "kernel", "implementation", "refused":
// [{"implementation", "why"}]}, and "measured": [{"implementation", "ns"}] where times decided. A
// layer is the steps of one node that run the same kernel. "choices" are the decisions between
// rivals, for the option of that name.
std::string described(const Executable& executable,
                      int64_t least_moved,
                      const std::string& precision);
// The least that any plan of the graph must read and write: its inputs, constants and outputs once,
// and each state that changes once in and once out.
int64_t least_bytes_moved(const Graph& graph);
// The same layers with "ns", "flops" and "bytes"; step_ns: by step.
std::string profiled(const Plan& plan, const std::vector<uint64_t>& step_ns);

}  // namespace tenon::onednn
