// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tn_graph as the backend's own Graph. Values of types or shapes that the backend does not know
// have `is_known` false, so that claiming can say why and go on.

#include "graph.hpp"

namespace tenon::onednn {

Result<Graph> import_graph(const tn_graph* source);
// kCount when the backend has no such type.
ElementType element_of(uint32_t dtype);

}  // namespace tenon::onednn
