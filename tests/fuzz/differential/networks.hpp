// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random networks: blocks of layers that read each other's results as they are, so that the
// patterns that backends fuse come up, with shared values, in many sizes.

#include "growth.hpp"

namespace tenon::fuzz {

// A network of at least n_nodes. Its outputs are what nobody reads, and some of the values in
// between. is_quantized: as a quantizer leaves it. used: how often each
// operator is in it.
Result<OwnedGraph> grow_network(tn_ctx* ctx,
                                size_t n_nodes,
                                bool is_quantized,
                                Random& random,
                                std::map<std::string, uint64_t>& used);

}  // namespace tenon::fuzz
