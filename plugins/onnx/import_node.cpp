// SPDX-License-Identifier: Apache-2.0
// One node: constants become constants, calls of model-local functions their nodes, others are
// upgraded and added.
#include <algorithm>

#include "importer.hpp"
#include "notes.hpp"
#include "read_type.hpp"
#include "upgrade.hpp"

namespace tenon::onnx_plugin {
namespace {

constexpr int kMaxCallDepth = 32;
constexpr int64_t kMaxNodes = 4'000'000;  // functions that call functions can grow without bound

Status check_opset(const Draft& node, const Frame& frame, int64_t* version) {
  auto at = frame.opsets->find("");
  if (at == frame.opsets->end())
    return invalid("opset_import: expected a version of ONNX's own operators, got none");
  *version = at->second;
  if (*version >= kOldestOpset && *version <= kCanonicalOpset) return {};
  return unsupported(cat("operator ", node.type, ": expected opset ", kOldestOpset, "..",
                         kCanonicalOpset, ", got ", *version));
}

// Inputs that are left out at the end. Captures of a body count from the node's own inputs, so that
// a node with a body keeps them.
template <class Attributes>
void drop_left_out(std::vector<Value>& inputs, const Attributes& attributes) {
  auto is_body = [](const auto& attr) { return type_of(attr) == onnx::AttributeProto::GRAPH; };
  if (std::any_of(attributes.begin(), attributes.end(), is_body)) return;
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back();
}

// ONNX Runtime's own pair has the types of later opsets, by which its quantizers write them in
// files of older ones; what it means is what ONNX's pair means.
bool is_onnx(const onnx::NodeProto& node) {
  const std::string &domain = node.domain(), &type = node.op_type();
  return domain == "ai.onnx" ||
         (domain == "com.microsoft" && (type == "QuantizeLinear" || type == "DequantizeLinear"));
}

bool stops_gradient(const onnx::NodeProto& node) {
  return node.op_type() == "Identity" &&
         std::any_of(node.metadata_props().begin(), node.metadata_props().end(),
                     [](const auto& entry) {
                       return entry.key() == kMetadataIdentity && entry.value() == kStopGradient;
                     });
}

Status notes(const EditView& edit, Node added, const onnx::NodeProto& from) {
  if (!from.doc_string().empty())
    TN_CHECK(edit.set_note(added.id, kNoteDoc, any_text(from.doc_string())));
  for (const auto& entry : from.metadata_props())
    if (entry.key() != kMetadataScope && entry.key() != kMetadataIdentity)
      TN_CHECK(edit.set_note(added.id, cat(kNoteMetadata, entry.key()), any_text(entry.value())));
  for (const onnx::AttributeProto& attr : from.attribute()) {
    if (!attr.tp().has_sequence_type()) continue;
    TN_TRY(type, read_type(attr.tp()));
    TN_CHECK(edit.set_note(added.id, kNoteSequenceOf, any_dtype(type.dtype)));
  }
  return {};
}

Result<Tensor> constant_tensor(ModelFiles& files, const Draft& node) {
  tn_ctx* ctx = files.ctx();
  if (const auto* value = node.find("value"))
    return read_tensor(files, value->t(), node.outputs[0]);
  if (const auto* value = node.find("value_float"))
    return Tensor::of<float>(ctx, TN_F32, {}, std::vector<float>{value->f()});
  if (const auto* value = node.find("value_int"))
    return Tensor::of<int64_t>(ctx, TN_I64, {}, std::vector<int64_t>{value->i()});
  if (const auto* value = node.find("value_floats")) {
    std::vector<float> list(value->floats().begin(), value->floats().end());
    return Tensor::of<float>(ctx, TN_F32, std::vector<int64_t>{value->floats_size()}, list);
  }
  if (const auto* value = node.find("value_ints")) {
    std::vector<int64_t> list(value->ints().begin(), value->ints().end());
    return Tensor::of<int64_t>(ctx, TN_I64, std::vector<int64_t>{value->ints_size()}, list);
  }
  return unsupported("expected a tensor or numbers, got texts or a sparse tensor");
}

// Exporters write a number of the program, such as the scale of attention's scores or the ones of a
// normalization without parameters, as a Constant node, and it is no weight to train. Some write
// weights so too (Paddle's), but those differ from element to element.
bool is_literal(const DLTensor& tensor) {
  auto of_one_value = [&](const auto* data) {
    return std::all_of(data, data + element_count(tensor), [&](auto x) { return x == *data; });
  };
  if (dtype_of(tensor) == TN_F32) return of_one_value(data_of<const float>(tensor));
  return dtype_of(tensor) == TN_F64 && of_one_value(data_of<const double>(tensor));
}

}  // namespace

Status Importer::node(const EditView& edit, const onnx::NodeProto& from, Frame& frame) {
  if (++n_nodes_ > kMaxNodes)
    return {TN_RESOURCE_EXHAUSTED, cat("expected at most ", kMaxNodes, " nodes, got more")};
  TN_TRY(made, draft(from, frame));
  if (const onnx::FunctionProto* called = function(from)) return call(edit, *called, made, frame);
  if (made.domain.empty()) {
    int64_t version = 0;
    TN_CHECK(check_opset(made, frame, &version));
    if (made.type == "Constant" && made.outputs.size() == 1) return constant(edit, made, frame);
    TN_CHECK(upgrade(edit, made, version));
  }
  return add(edit, from, made, frame);
}

Result<Draft> Importer::draft(const onnx::NodeProto& from, const Frame& frame) const {
  Draft out;
  out.domain = is_onnx(from) ? std::string() : from.domain();
  out.type = from.op_type();
  if (!from.name().empty()) out.name = cat(frame.prefix, from.name());
  out.scope = frame.scope;
  for (const auto& entry : from.metadata_props())
    if (entry.key() == kMetadataScope) out.scope = entry.value();
  if (stops_gradient(from)) {
    out.domain = "tenon";
    out.type = kStopGradient;
  }
  for (int i = 0; i < from.input_size(); ++i) {
    if (from.input(i).empty()) {
      out.inputs.emplace_back();
      continue;
    }
    auto at = frame.values.find(from.input(i));
    if (at == frame.values.end())
      return invalid(cat("input ", i, ": expected the name of a value, got ", from.input(i),
                         ", which nothing makes"));
    out.inputs.push_back(at->second);
  }
  drop_left_out(out.inputs, from.attribute());
  out.outputs.assign(from.output().begin(), from.output().end());
  const bool may_shorten = !counts_outputs(out.domain, out.type, !bodies_of(from).empty());
  while (may_shorten && !out.outputs.empty() && out.outputs.back().empty())
    out.outputs.pop_back();
  for (const onnx::AttributeProto& attr : from.attribute()) {
    if (attr.ref_attr_name().empty()) {
      out.attrs.push_back(attr);
      continue;
    }
    if (!frame.arguments) return invalid(cat("attribute ", attr.name(), ": not in a function"));
    for (const onnx::AttributeProto& argument : *frame.arguments) {
      if (argument.name() != attr.ref_attr_name()) continue;
      out.attrs.push_back(argument);
      out.attrs.back().set_name(attr.name());
    }
  }
  return out;
}

Status Importer::constant(const EditView& edit, const Draft& node, Frame& frame) {
  TN_TRY(tensor, constant_tensor(files_, node));
  TN_TRY(value, edit.constant(tensor, cat(frame.prefix, node.outputs[0])));
  if (is_literal(tensor.dl())) {
    TN_CHECK(edit.set_note(value.id, kNoteLiteral, any_bool(true)));
    TN_CHECK(edit.set_note(value.id, kNoteTrain, any_bool(false)));
  }
  return define(frame, node.outputs[0], value);
}

Status Importer::add(const EditView& edit, const onnx::NodeProto& from, Draft& node, Frame& frame) {
  AttrStore store;
  std::vector<Value> inputs = node.inputs;
  drop_left_out(inputs, node.attrs);
  const bool has_types = node.domain.empty() || node.domain == "tenon";
  for (const onnx::AttributeProto& attr : node.attrs)
    if (type_of(attr) != onnx::AttributeProto::GRAPH) TN_CHECK(store.add(files_, attr, has_types));
  TN_CHECK(bodies(node, frame, store, inputs));
  std::vector<std::string> names;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    bool passing = i == 0 && !node.after.empty();
    bool named = !node.outputs[i].empty() && !passing;
    names.push_back(named ? cat(frame.prefix, node.outputs[i]) : std::string());
  }
  NodeSpec spec{.type = node.type,
                .inputs = inputs,
                .attrs = store.attrs(),
                .n_outputs = node.outputs.size(),
                .name = node.name,
                .domain = node.domain,
                .scope = node.scope,
                .output_names = {names.begin(), names.end()}};
  TN_TRY(added, edit.add(spec));
  TN_CHECK(notes(edit, added, from));
  return name_outputs(edit, added, node, frame);
}

Status Importer::name_outputs(const EditView& edit, Node added, const Draft& node, Frame& frame) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Value value = added.output(i);
    if (i == 0 && !node.after.empty()) {
      for (const auto& step : node.after) {
        TN_TRY(next, step(edit, value));
        value = next;
      }
      std::string name = cat(frame.prefix, node.outputs[i]);
      if (!edit.graph().find(name))
        TN_CHECK(Status(services.edit->set_value_name(edit.raw, value.id, str(name))));
    }
    TN_CHECK(define(frame, node.outputs[i], value));
  }
  return {};
}

Status Importer::call(const EditView& edit,
                      const onnx::FunctionProto& function,
                      const Draft& node,
                      Frame& frame) {
  if (frame.call_depth >= kMaxCallDepth)
    return invalid("model-local functions call each other without end");
  if (static_cast<int>(node.inputs.size()) > function.input_size() ||
      static_cast<int>(node.outputs.size()) > function.output_size())
    return invalid(cat("expected at most ", function.input_size(), " inputs and ",
                       function.output_size(), " outputs, got ", node.inputs.size(), " and ",
                       node.outputs.size()));
  std::vector<onnx::AttributeProto> arguments = node.attrs;
  for (const onnx::AttributeProto& fallback : function.attribute_proto())
    if (!node.find(fallback.name())) arguments.push_back(fallback);
  std::string name = node.name.empty()
                         ? cat(frame.prefix, node.outputs.empty() ? node.type : node.outputs[0])
                         : node.name;
  Frame inner;
  inner.opsets = &function_opsets_[&function];
  inner.arguments = &arguments;
  inner.value_info = &function.value_info();
  inner.prefix = cat(name, "/");
  inner.scope = frame.scope.empty() ? name : cat(frame.scope, "/", name);
  inner.call_depth = frame.call_depth + 1;
  for (int i = 0; i < function.input_size(); ++i)
    TN_CHECK(define(inner, function.input(i), node.input(static_cast<size_t>(i))));
  TN_CHECK(nodes(edit, function.node(), inner));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    auto at = inner.values.find(function.output(static_cast<int>(i)));
    if (at == inner.values.end())
      return invalid(cat("output ", function.output(static_cast<int>(i)),
                         " of the function: "
                         "expected the name of a value, got one that nothing makes"));
    std::string wanted = cat(frame.prefix, node.outputs[i]);
    bool ours = at->second && !node.outputs[i].empty() && at->second.producer();
    if (ours && !edit.graph().find(wanted))
      TN_CHECK(Status(services.edit->set_value_name(edit.raw, at->second.id, str(wanted))));
    TN_CHECK(define(frame, node.outputs[i], at->second));
  }
  return {};
}

}  // namespace tenon::onnx_plugin
