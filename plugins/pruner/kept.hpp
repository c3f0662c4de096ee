// SPDX-License-Identifier: Apache-2.0
#pragma once
// The note that says which entries of the original's constants are left.

#include <string>

#include "removal.hpp"

namespace tenon::pruner {

// The note of the graph once these entries are gone; entries count as in the first model pruned.
std::string kept_after(const Removal& removal, Graph graph);

}  // namespace tenon::pruner
