// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs for judges outside: PATH.onnx, and its inputs, results and tolerances as .npy files.

#include <string>
#include <vector>

#include "judgement.hpp"

namespace tenon::fuzz {

std::string printed(const tn_graph* graph);
void keep(tenon_session* session,
          tn_ctx* ctx,
          const tn_graph* graph,
          const std::vector<Tensor>& inputs,
          const std::vector<Expected>& expected,
          const std::string& path);
void keep_found(tenon_session* session,
                const tn_graph* graph,
                const std::vector<Tensor>& inputs,
                const std::string& path);

}  // namespace tenon::fuzz
