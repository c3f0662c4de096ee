// SPDX-License-Identifier: Apache-2.0
// One node with its attributes and bodies.
#include "attributes.hpp"
#include "dtypes.hpp"
#include "exporter.hpp"
#include "names.hpp"
#include "notes.hpp"
#include "opset.hpp"

namespace tenon::onnx_plugin {
namespace {

using onnx::AttributeProto;

// What nothing uses and the reader named by itself need not be computed.
bool asked_for(const Node& node, uint64_t i, bool has_bodies) {
  Value value = node.output(i);
  if (value.consumer_count() || value.is_output() || node.n_outputs() == 1) return true;
  // Of operators of others nothing is known.
  const bool is_counted =
      !node.domain().empty() || counts_outputs(node.domain(), node.type(), has_bodies);
  if (is_counted || i < required_outputs(node)) return true;
  return value.name() != (i == 0 ? std::string(node.name()) : cat(node.name(), "_out", i));
}

// dtype: of a tensor, none of a sequence, whose own is a note.
Status write_type_attribute(const Node& node, uint32_t dtype, AttributeProto& to) {
  Type type;
  type.dtype = dtype;
  if (dtype == TN_DTYPE_NONE) {
    tn_any element{};
    Status ignored(services.graph->note(node.graph, node.id, str(kNoteSequenceOf), &element));
    if (element.tag != TN_ANY_DTYPE)
      return unsupported("expected the type of a tensor, or a sequence as a file has it, got none");
    type.kind = TN_KIND_SEQUENCE;
    type.dtype = static_cast<uint32_t>(element.v.u);
  }
  to.set_type(AttributeProto::TYPE_PROTO);
  return write_type(type, *to.mutable_tp());
}

void node_notes(const Node& node, bool keeps_metadata, onnx::NodeProto& to) {
  if (!node.scope().empty()) add_metadata(to, kMetadataScope, node.scope());
  if (!keeps_metadata) return;
  for (uint64_t i = 0, n = services.graph->note_count(node.graph, node.id); i < n; ++i) {
    std::string_view key = view(services.graph->note_key(node.graph, node.id, i));
    tn_any any{};
    Status ignored(services.graph->note(node.graph, node.id, str(key), &any));
    if (key == kNoteDoc) to.set_doc_string(std::string(text_of(any)));
    if (key.rfind(kNoteMetadata, 0) == 0)
      add_metadata(to, key.substr(kNoteMetadata.size()), text_of(any));
  }
}

}  // namespace

bool is_plain_copy(const Node& node) {
  const std::string_view type = node.type();
  return node.domain() == "tenon" && (type == kStopGradient || type == "Barrier");
}

Status Exporter::node(Node from, ScopeNames& names, onnx::NodeProto& to) {
  to.set_name(std::string(from.name()));
  if (is_plain_copy(from)) {
    to.set_op_type("Identity");
    to.add_input(names.of(from.input(0)));
    to.add_output(names.of(from.output()));
    if (from.type() == kStopGradient) add_metadata(to, kMetadataIdentity, kStopGradient);
    node_notes(from, keeps_metadata, to);
    return {};
  }
  to.set_op_type(std::string(from.type()));
  std::string domain(from.domain());
  if (!domain.empty()) to.set_domain(domain);
  if (domain == "tenon") own_nodes.push_back(cat(from.name(), " (tenon:", from.type(), ")"));
  bool has_bodies = false;
  for (uint64_t i = 0, n = services.graph->attr_count(from.graph, from.id); i < n; ++i)
    has_bodies |=
        from.attr(view(services.graph->attr_name(from.graph, from.id, i))).tag == TN_ANY_GRAPH;
  uint64_t captures = has_bodies ? static_cast<uint64_t>(from.attr_int("captures")) : 0;
  for (uint64_t i = 0, n = from.n_inputs(); i + captures < n; ++i)
    to.add_input(names.of(from.input(i)));
  for (uint64_t i = 0, n = from.n_outputs(); i < n; ++i)
    to.add_output(asked_for(from, i, has_bodies) ? names.of(from.output(i)) : std::string());
  for (uint64_t i = 0, n = services.graph->attr_count(from.graph, from.id); i < n; ++i) {
    std::string_view name = view(services.graph->attr_name(from.graph, from.id, i));
    if (has_bodies && name == "captures") continue;
    TN_CHECK(attribute(from, name, names, to).in(cat("attribute ", name)));
  }
  node_notes(from, keeps_metadata, to);
  TN_TRY(needed, lowest_opset(from));
  if (needed > opset) {
    opset = needed;
    opset_node = cat("node ", from.name(), " (", from.type(), ")");
  }
  return {};
}

Status Exporter::attribute(Node from,
                           std::string_view name,
                           ScopeNames& names,
                           onnx::NodeProto& to) {
  tn_any any = from.attr(name);
  AttributeProto& attr = *to.add_attribute();
  attr.set_name(std::string(name));
  switch (any.tag) {
    case TN_ANY_I64:
    case TN_ANY_BOOL:
      attr.set_type(AttributeProto::INT);
      attr.set_i(any.v.i);
      return {};
    case TN_ANY_DTYPE: {
      const auto dtype = static_cast<uint32_t>(any.v.u);
      if (from.domain().empty() && is_type_attribute(name))
        return write_type_attribute(from, dtype, attr);
      attr.set_type(AttributeProto::INT);
      attr.set_i(onnx_of_dtype(dtype));
      return {};
    }
    case TN_ANY_F64:
      attr.set_type(AttributeProto::FLOAT);
      attr.set_f(static_cast<float>(any.v.f));
      return {};
    case TN_ANY_TEXT:
      attr.set_type(AttributeProto::STRING);
      attr.set_s(std::string(text_of(any)));
      return {};
    case TN_ANY_I64S:
      attr.set_type(AttributeProto::INTS);
      for (int64_t value : ints_of(any))
        attr.add_ints(value);
      return {};
    case TN_ANY_F64S:
      attr.set_type(AttributeProto::FLOATS);
      for (double value : floats_of(any))
        attr.add_floats(static_cast<float>(value));
      return {};
    case TN_ANY_TEXTS:
      attr.set_type(AttributeProto::STRINGS);
      for (std::string& value : texts_of(any))
        attr.add_strings(std::move(value));
      return {};
    case TN_ANY_TENSOR: {
      attr.set_type(AttributeProto::TENSOR);
      auto* raw = static_cast<tn_tensor*>(const_cast<void*>(any.v.p));
      TN_TRY(plain, Tensor::share(raw).dense(services.graph->context(from.graph)));
      TN_CHECK(write_header(plain, "", *attr.mutable_t()));
      attr.mutable_t()->set_raw_data(plain.data<char>(), services.tensor->bytes(plain.get()));
      return {};
    }
    case TN_ANY_GRAPH:
      attr.set_type(AttributeProto::GRAPH);
      return body(from, static_cast<const tn_graph*>(any.v.p), names, *attr.mutable_g());
    default:
      return unsupported("ONNX has no attributes of this kind");
  }
}

Status Exporter::body(Node from, const tn_graph* raw, ScopeNames& around, onnx::GraphProto& to) {
  Graph graph{raw};
  ScopeNames names(&around);
  to.set_name("body");
  std::vector<Value> inputs = graph.inputs();
  size_t captures = std::min<size_t>(static_cast<size_t>(from.attr_int("captures")), inputs.size());
  size_t n_formal = inputs.size() - captures;
  for (size_t i = 0; i < captures; ++i)
    names.bind(inputs[n_formal + i], around.of(from.input(from.n_inputs() - captures + i)));
  for (size_t i = 0; i < n_formal; ++i) {
    onnx::ValueInfoProto& input = *to.add_input();
    input.set_name(names.claim(inputs[i], inputs[i].name()));
    if (inputs[i].dtype() == TN_DTYPE_NONE) continue;
    TN_CHECK(write_type(inputs[i].type(), *input.mutable_type()));
  }
  return fill(graph, names, to, nullptr);
}

}  // namespace tenon::onnx_plugin
