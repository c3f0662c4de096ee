// SPDX-License-Identifier: Apache-2.0
#pragma once
// What passes that repair a quantized model are given: the float model that it was made of (option
// `original`), and data to run both on.

#include <string>
#include <vector>

#include "tenon/sdk/feed.hpp"
#include "tenon/sdk/role/pass.hpp"

namespace tenon::quantizer {

inline Result<OwnedGraph> graph_option(const Options& options, std::string_view name) {
  tn_any given = options.get(name);
  if (given.tag != TN_ANY_GRAPH)
    return invalid(
        cat("option ", name, ": expected the float model that the quantized one was made of"));
  auto* raw = static_cast<tn_graph*>(const_cast<void*>(given.v.p));
  services.graph->retain(raw);
  return Result<OwnedGraph>(OwnedGraph::take(raw));
}

class RepairPass {
 protected:
  Status take(tn_ctx* ctx, const Options& options) {
    ctx_ = ctx;
    TN_TRY(data, FeedOptions::read(ctx, options));
    data_ = std::move(data);
    TN_TRY(original, graph_option(options, "original"));
    original_ = std::move(original);
    backends_ = options.texts("backend");
    mask_ = options.text("mask");
    return {};
  }

  tn_ctx* ctx_ = nullptr;
  FeedOptions data_;
  OwnedGraph original_;
  std::vector<std::string> backends_;
  std::string mask_;  // the input that is 0 at padding; empty: there is none
};

}  // namespace tenon::quantizer
