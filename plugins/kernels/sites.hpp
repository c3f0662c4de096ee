// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fused kernels of any plugin, and the places of a graph that they take.

#include <string>
#include <vector>

#include "tenon/role/kernel.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/match.hpp"

namespace tenon::kernels {

// A component of role tenon.kernel/1.
struct FusedKernel {
  std::string id;
  Component component;
  Pattern pattern;

  static Result<FusedKernel> make(tn_ctx* ctx, const std::string& id);
  const tn_kernel* table() const { return component.table<tn_kernel>(); }
  void* self() const { return component.self(); }
};

struct Site {
  const FusedKernel* kernel = nullptr;
  std::vector<Node> nodes;  // the first one makes the output
  std::vector<Value> inputs;

  // f(const tn_kernel_site*), which is good for the call.
  template <class F>
  auto as_abi(const F& f) const {
    std::vector<tn_node_id> node_ids;
    std::vector<tn_value_id> value_ids;
    for (const Node& node : nodes)
      node_ids.push_back(node.id);
    for (Value input : inputs)
      value_ids.push_back(input.id);
    tn_kernel_site raw{sizeof raw,          0,
                       nodes.front().graph, node_ids.size(),
                       node_ids.data(),     value_ids.size(),
                       value_ids.data(),    nodes.front().output().id};
    return f(&raw);
  }
};

struct Refusal {
  Node node;
  std::string why;
};

// Places where a pattern fits and whose kernel takes them: no node in two of them, earlier kernels
// and earlier nodes first.
Result<std::vector<Site>> find_sites(Graph graph,
                                     const std::vector<FusedKernel>& kernels,
                                     std::vector<Refusal>* refused);

}  // namespace tenon::kernels
