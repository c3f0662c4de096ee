// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random graphs: samples of operator rows, each reading what others computed, brought to the type
// that it wants by Cast, Reshape, Slice and similar nodes.

#include <map>
#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"

#include "mutants/mutation.hpp"

namespace tenon::fuzz {

struct Recipe {
  tn_ctx* ctx;
  std::vector<const tn_op*> rows;
  bool quantize = false;  // QuantizeLinear and DequantizeLinear between real operators
};

// Some of the rows, or all: graphs of few kinds of nodes have the patterns that backends fuse.
std::vector<const tn_op*> some_of(const std::vector<const tn_op*>& rows, Random& random);

// A graph of n_nodes or a few more, whose outputs are what nobody reads and some of the values in
// between. used: how often each row's sample went in.
Result<OwnedGraph> grow(const Recipe& recipe,
                        size_t n_nodes,
                        Random& random,
                        std::map<std::string, uint64_t>& used);

// A value for each input of a graph, in the domain of samples.
Result<std::vector<Tensor>> numbers_for(tn_ctx* ctx, Graph graph, Random& random);

}  // namespace tenon::fuzz
