// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who uses which name: the order of nodes, and what a body takes from around it.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/status.hpp"

#include "model.hpp"

namespace tenon::onnx_plugin {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Names that the body uses and does not define, in order of first use, bodies inside included.
std::vector<std::string> free_names(const onnx::GraphProto& body);

// The bodies of a node, sorted by attribute name.
std::vector<const onnx::AttributeProto*> bodies_of(const onnx::NodeProto& node);

// Whether the number of outputs says what a node computes, also of those without a name: Split is
// the only operator of ONNX's own without bodies that has as many as one likes.
bool counts_outputs(std::string_view domain, std::string_view type, bool has_bodies);

// "conv1 (Conv)", or by position where it has no name.
std::string node_text(const onnx::NodeProto& node, int index);

// Indices so that values come before their uses; as in the file where that is sorted already.
Result<std::vector<int>> node_order(const Nodes& nodes);

}  // namespace tenon::onnx_plugin
