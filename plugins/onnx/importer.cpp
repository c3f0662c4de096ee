// SPDX-License-Identifier: Apache-2.0
// The graph around the nodes: inputs, initializers, order, outputs.
#include "importer.hpp"

#include <unordered_set>

#include "notes.hpp"
#include "read_sparse.hpp"
#include "read_type.hpp"
#include "upgrade.hpp"

namespace tenon::onnx_plugin {
namespace {

std::string canonical_domain(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

template <class List>
Opsets read_opsets(const List& imports, const Opsets& fallback) {
  Opsets out = fallback;
  for (const auto& import : imports)
    out[canonical_domain(import.domain())] = import.version();
  return out;
}

std::string shape_text(const std::vector<int64_t>& dims) {
  std::string text;
  for (int64_t dim : dims)
    text += cat(text.empty() ? "" : ", ", dim < 0 ? "?" : std::to_string(dim));
  return cat("[", text, "]");
}

Status note_train(const EditView& edit, Value value, const onnx::TensorProto& from) {
  for (const auto& entry : from.metadata_props())
    if (entry.key() == kMetadataTrain)
      TN_CHECK(edit.set_note(value.id, kNoteTrain, any_bool(entry.value() == "1")));
  return {};
}

std::string function_key(const std::string& domain,
                         const std::string& name,
                         const std::string& overload) {
  return cat(canonical_domain(domain), "\n", name, "\n", overload);
}

}  // namespace

Importer::Importer(ModelFiles& files, const onnx::ModelProto& model, const Cancel& cancel)
    : files_(files),
      model_(model),
      cancel_(cancel),
      opsets_(read_opsets(model.opset_import(), {})) {
  for (const onnx::FunctionProto& function : model.functions()) {
    functions_[function_key(function.domain(), function.name(), function.overload())] = &function;
    function_opsets_[&function] = read_opsets(function.opset_import(), opsets_);
  }
}

const onnx::FunctionProto* Importer::function(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  auto at = functions_.find(function_key(node.domain(), node.op_type(), node.overload()));
  return at == functions_.end() ? nullptr : at->second;
}

Status Importer::functions_differ() const {
  for (const onnx::FunctionProto& one : model_.functions())
    if (functions_.at(function_key(one.domain(), one.name(), one.overload())) != &one)
      return invalid(
          cat("two functions have the name ", one.name(), " in the domain ", one.domain()));
  return {};
}

Status Importer::run(const EditView& edit) {
  if (!model_.has_graph()) return invalid("expected a graph, got none (is it an ONNX model?)");
  TN_CHECK(functions_differ());
  const Graph& graph = model_.graph();
  Frame frame;
  frame.opsets = &opsets_;
  frame.value_info = &graph.value_info();
  TN_CHECK(versions(edit));
  TN_CHECK(inputs(edit, graph, {}, frame));
  TN_CHECK(initializers(edit, graph, frame));
  TN_CHECK(nodes(edit, graph.node(), frame));
  return outputs(edit, graph, frame);
}

// Which versions of operators the model means, before its first node: the model's own word goes
// before that of its functions, which are inlined.
Status Importer::versions(const EditView& edit) const {
  Opsets all = opsets_;
  for (const auto& [function, opsets] : function_opsets_)
    all.insert(opsets.begin(), opsets.end());
  for (const auto& [domain, version] : all)
    if (!domain.empty()) TN_CHECK(edit.set_note(0, cat(kNoteOpset, domain), any_int(version)));
  return {};
}

Status Importer::define(Frame& frame, const std::string& name, Value value) const {
  if (name.empty() || frame.values.emplace(name, value).second) return {};
  return invalid(cat("two values have the name ", name));
}

// Bodies need not state the types of their inputs. A list has to be known as one before anything
// runs; element types and shapes follow from the operands then.
Result<Type> Importer::input_type(const onnx::ValueInfoProto& input, Value operand) {
  if (input.type().value_case() == onnx::TypeProto::VALUE_NOT_SET && operand &&
      operand.type().kind != TN_KIND_TENSOR)
    return operand.type();
  return read_type(input.type());
}

Status Importer::inputs(const EditView& edit,
                        const Graph& graph,
                        const std::vector<Value>& operands,
                        Frame& frame) {
  // Files of ir 3 and 4 list initializers as inputs too: those are weights with a default.
  std::unordered_set<std::string_view> initialized;
  for (const auto& tensor : graph.initializer())
    initialized.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer())
    initialized.insert(tensor.values().name());
  size_t place = 0;
  for (const auto& input : graph.input()) {
    Value operand = place < operands.size() ? operands[place] : Value();
    ++place;
    if (initialized.count(input.name())) continue;
    std::string what = cat("input ", input.name());
    Result<Type> type = input_type(input, operand);
    if (!type.ok()) return std::move(type).status().in(what);
    Result<Value> value = edit.input(input.name(), *type);
    if (!value.ok()) return std::move(value).status().in(what);
    TN_CHECK(define(frame, input.name(), *value));
  }
  return {};
}

Status Importer::initializers(const EditView& edit, const Graph& graph, Frame& frame) {
  for (const onnx::TensorProto& from : graph.initializer()) {
    TN_CHECK(cancel_.check());
    TN_TRY(tensor, read_tensor(files_, from, from.name()));
    TN_TRY(value, edit.constant(tensor, cat(frame.prefix, from.name())));
    TN_CHECK(note_train(edit, value, from));
    TN_CHECK(define(frame, from.name(), value));
  }
  for (const onnx::SparseTensorProto& from : graph.sparse_initializer()) {
    TN_CHECK(cancel_.check());
    const std::string& name = from.values().name();
    TN_TRY(tensor, read_sparse_tensor(files_, from));
    TN_TRY(value, edit.constant(tensor, cat(frame.prefix, name)));
    TN_CHECK(note_train(edit, value, from.values()));
    TN_CHECK(define(frame, name, value));
  }
  return {};
}

Status Importer::nodes(const EditView& edit, const Nodes& nodes, Frame& frame) {
  TN_TRY(order, node_order(nodes));
  for (int i : order) {
    TN_CHECK(cancel_.check());
    Status failed = node(edit, nodes[i], frame);
    if (!failed.ok()) return std::move(failed).in(node_text(nodes[i], i));
  }
  declare(edit, frame);
  return {};
}

// What the file says about shapes fills in what inference left open. Where the two disagree,
// inference is right: exporters leave stale shapes behind.
void Importer::declare(const EditView& edit,
                       std::string_view what,
                       Value value,
                       const Type& declared) {
  if (value.is_constant()) return;
  Type known = value.type();
  bool differs = known.ranked && declared.ranked && known.rank() != declared.rank();
  for (size_t i = 0; known.ranked && declared.ranked && !differs && i < known.dims.size(); ++i)
    differs = known.dims[i] >= 0 && declared.dims[i] >= 0 && known.dims[i] != declared.dims[i];
  if (differs)
    contradicted_.push_back(cat(what, ": declared ", shape_text(declared.dims),
                                ", the model computes ", shape_text(known.dims)));
  else if (!known.is_static() || known.dtype == TN_DTYPE_NONE)
    Status ignored = edit.set_type(value, declared);
}

void Importer::declare(const EditView& edit, const Frame& frame) {
  if (!frame.value_info) return;
  for (const auto& info : *frame.value_info) {
    auto at = frame.values.find(info.name());
    if (at == frame.values.end()) continue;
    Result<Type> type = read_type(info.type());
    if (type.ok()) declare(edit, cat("value ", info.name()), at->second, *type);
  }
}

Status Importer::outputs(const EditView& edit, const Graph& graph, Frame& frame) {
  for (const auto& output : graph.output()) {
    std::string what = cat("output ", output.name());
    auto at = frame.values.find(output.name());
    if (at == frame.values.end())
      return invalid(cat(what, ": expected the name of a value, got one that nothing makes"));
    Result<Type> type = read_type(output.type());
    if (!type.ok()) return std::move(type).status().in(what);
    Type known = at->second.type();
    bool other_type = known.dtype && type->dtype && known.dtype != type->dtype;
    if (other_type)
      return invalid(
          cat(what, ": expected ", dtype_name(known.dtype), ", got ", dtype_name(type->dtype)));
    declare(edit, what, at->second, *type);
    TN_CHECK(edit.output(output.name(), at->second).in(what));
  }
  return {};
}

}  // namespace tenon::onnx_plugin
