// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds the graph. One Importer a file; a Frame is what names mean at some place of it: in the
// graph, in a body, or in a call of a model-local function (which is inlined).

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/run.hpp"

#include "attributes.hpp"
#include "draft.hpp"
#include "names.hpp"
#include "read_tensor.hpp"

namespace tenon::onnx_plugin {

using Opsets = std::map<std::string, int64_t>;  // domain -> version; "" is ONNX's own

struct Frame {
  std::unordered_map<std::string, Value> values;
  const Opsets* opsets = nullptr;
  // Attributes of the function's call, by which its nodes' ref_attr_name are replaced.
  const std::vector<onnx::AttributeProto>* arguments = nullptr;
  const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>* value_info = nullptr;
  std::string prefix;  // of names: "call/"
  std::string scope;
  int call_depth = 0;
};

class Importer {
 public:
  Importer(ModelFiles& files, const onnx::ModelProto& model, const Cancel& cancel);
  // The model's graph. The edit is committed by the caller.
  Status run(const EditView& edit);
  // Where the file declares another shape than the model computes, a line each.
  const std::vector<std::string>& contradicted() const { return contradicted_; }

 private:
  using Graph = onnx::GraphProto;
  using Captures = std::vector<std::pair<std::string, Value>>;

  Status functions_differ() const;
  Status versions(const EditView& edit) const;
  // operands: of the node whose body this is; none for the model's own graph.
  Status inputs(const EditView& edit,
                const Graph& graph,
                const std::vector<Value>& operands,
                Frame& frame);
  static Result<Type> input_type(const onnx::ValueInfoProto& input, Value operand);
  Status initializers(const EditView& edit, const Graph& graph, Frame& frame);
  Status nodes(const EditView& edit, const Nodes& nodes, Frame& frame);
  Status outputs(const EditView& edit, const Graph& graph, Frame& frame);

  Status node(const EditView& edit, const onnx::NodeProto& from, Frame& frame);
  Result<Draft> draft(const onnx::NodeProto& from, const Frame& frame) const;
  Status constant(const EditView& edit, const Draft& node, Frame& frame);
  Status add(const EditView& edit, const onnx::NodeProto& from, Draft& node, Frame& frame);
  Status name_outputs(const EditView& edit, Node added, const Draft& node, Frame& frame);
  Status call(const EditView& edit,
              const onnx::FunctionProto& function,
              const Draft& node,
              Frame& frame);

  Status bodies(const Draft& node,
                const Frame& frame,
                AttrStore& store,
                std::vector<Value>& inputs);
  Result<OwnedGraph> body(const Graph& graph,
                          const std::vector<Value>& operands,
                          const Captures& captures,
                          const Frame& around);

  Status define(Frame& frame, const std::string& name, Value value) const;
  void declare(const EditView& edit, const Frame& frame);
  void declare(const EditView& edit, std::string_view what, Value value, const Type& declared);
  const onnx::FunctionProto* function(const onnx::NodeProto& node) const;

  ModelFiles& files_;
  const onnx::ModelProto& model_;
  const Cancel& cancel_;
  Opsets opsets_;
  std::map<std::string, const onnx::FunctionProto*> functions_;
  std::map<const onnx::FunctionProto*, Opsets> function_opsets_;
  std::vector<std::string> contradicted_;
  int64_t n_nodes_ = 0;
};

}  // namespace tenon::onnx_plugin
