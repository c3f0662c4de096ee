// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graph to messages. The weights of the graph itself are not put into them: the writer streams
// those, so that they are never copied and files may be larger than protobuf's 2 GB.

#include <string>
#include <vector>

#include "tenon/sdk/graph.hpp"

#include "model.hpp"
#include "scope_names.hpp"

namespace tenon::onnx_plugin {

struct Weight {
  onnx::TensorProto header;  // all but the data
  Tensor tensor;             // dense
};

class Exporter {
 public:
  // model's graph holds everything but its initializers, which are in weights.
  Status run(Graph graph);

  bool keeps_metadata = true;  // of nodes, as other tools wrote it
  onnx::ModelProto model;
  std::vector<Weight> weights;
  int64_t opset = 0;                   // the lowest that takes every node
  std::string opset_node;              // the node that asks for it
  std::vector<std::string> own_nodes;  // "name (tenon:Random)": those that no other reader runs

 private:
  Status fill(Graph from, ScopeNames& names, onnx::GraphProto& to, std::vector<Weight>* weights);
  Status constants(Graph from,
                   ScopeNames& names,
                   onnx::GraphProto& to,
                   std::vector<Weight>* weights);
  Status node(Node from, ScopeNames& names, onnx::NodeProto& to);
  Status attribute(Node from, std::string_view name, ScopeNames& names, onnx::NodeProto& to);
  Status body(Node from, const tn_graph* body, ScopeNames& around, onnx::GraphProto& to);
  Status functions(Graph from);
  void notes(Graph from);
};

// Of a model, a node or a tensor.
template <class Proto>
void add_metadata(Proto& to, std::string_view key, std::string_view value) {
  auto& entry = *to.add_metadata_props();
  entry.set_key(std::string(key));
  entry.set_value(std::string(value));
}

// What says something to gradients and schedules alone: in a file it is its first input.
bool is_plain_copy(const Node& node);
Status write_header(const Tensor& tensor, std::string_view name, onnx::TensorProto& to);
Status write_type(const Type& type, onnx::TypeProto& to);

}  // namespace tenon::onnx_plugin
