// SPDX-License-Identifier: Apache-2.0
// The graph around the nodes.
#include "exporter.hpp"

#include "notes.hpp"
#include "opset.hpp"

namespace tenon::onnx_plugin {
namespace {

std::string text_note(Graph graph, uint64_t id, std::string_view key) {
  tn_any any{};
  Status ignored(services.graph->note(graph.raw, id, str(key), &any));
  return std::string(text_of(any));
}

Status write_value(Value value, const std::string& name, onnx::ValueInfoProto& to) {
  to.set_name(name);
  if (value.dtype() == TN_DTYPE_NONE) return {};  // no type is better than half of one
  return write_type(value.type(), *to.mutable_type()).in(cat("value ", name));
}

// What renames an output whose value has another name already: an input, another output.
Value renamed(Graph from, size_t output) {
  return {from.raw, UINT64_MAX - output};
}

// The outputs of a body are known by their positions, so they take names that are free.
void name_results(Graph from, ScopeNames& names) {
  std::vector<Value> outputs = from.outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    names.claim(names.has(outputs[i]) ? renamed(from, i) : outputs[i], from.output_name(i));
}

// Outputs come first after the inputs: their names are the world's.
Status name_outputs(Graph from, ScopeNames& names) {
  std::vector<Value> outputs = from.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string wanted(from.output_name(i));
    if (!names.has(outputs[i]) && !names.taken(wanted)) {
      names.claim(outputs[i], wanted);
    } else if (names.of(outputs[i]) != wanted) {
      if (names.taken(wanted))
        return invalid(cat("output ", wanted,
                           ": expected a name of its own, got that of an input "
                           "(rename one of them)"));
      names.bind(renamed(from, i), wanted);
    }
  }
  return {};
}

Status name_values(Graph from, ScopeNames& names) {
  if (names.is_inner()) {
    name_results(from, names);
  } else {
    TN_CHECK(name_outputs(from, names));
  }
  for (const Value& value : from.constants()) {
    const std::string* outer = names.offered(services.graph->constant(from.raw, value.id));
    if (names.has(value)) continue;
    outer ? names.bind(value, *outer) : (void)names.claim(value, value.name());
  }
  for (const Node& node : from.nodes())
    for (const Value& value : node.outputs())
      if (!names.has(value)) names.claim(value, value.name());
  return {};
}

// Takes the tensor's contents.
void write_constant(onnx::TensorProto& tensor, onnx::NodeProto& to) {
  to.set_op_type("Constant");
  to.add_output(tensor.name());
  auto& attr = *to.add_attribute();
  attr.set_name("value");
  attr.set_type(onnx::AttributeProto::TENSOR);
  attr.mutable_t()->Swap(&tensor);
}

}  // namespace

Status Exporter::run(Graph graph) {
  opset = kLowestWritten;
  model.set_producer_name(std::string(kOurProducer));
  ScopeNames names(nullptr);
  onnx::GraphProto& to = *model.mutable_graph();
  std::string name = text_note(graph, 0, kNoteGraphName);
  to.set_name(name.empty() ? "graph" : name);
  for (const Value& value : graph.inputs()) {
    names.bind(value, std::string(value.name()));
    TN_CHECK(write_value(value, names.of(value), *to.add_input()));
  }
  TN_CHECK(fill(graph, names, to, &weights));
  TN_CHECK(functions(graph));
  notes(graph);
  return {};
}

Status Exporter::fill(Graph from,
                      ScopeNames& names,
                      onnx::GraphProto& to,
                      std::vector<Weight>* into) {
  TN_CHECK(name_values(from, names));
  TN_CHECK(constants(from, names, to, into));
  for (const Node& each : from.nodes()) {
    Status failed = node(each, names, *to.add_node());
    if (!failed.ok())
      return std::move(failed).in(cat("node ", each.name(), " (", each.type(), ")"));
    for (const Value& value : each.outputs()) {
      Type type = value.type();
      if (value.is_output() || type.dtype == TN_DTYPE_NONE || !type.ranked) continue;
      TN_CHECK(write_value(value, names.of(value), *to.add_value_info()));
    }
  }
  std::vector<Value> outputs = from.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string name = names.of(outputs[i]);
    if (names.has(renamed(from, i))) {
      onnx::NodeProto& identity = *to.add_node();
      identity.set_op_type("Identity");
      identity.add_input(name);
      name = names.of(renamed(from, i));
      identity.add_output(name);
    }
    TN_CHECK(write_value(outputs[i], name, *to.add_output()));
  }
  return {};
}

Status Exporter::constants(Graph from,
                           ScopeNames& names,
                           onnx::GraphProto& to,
                           std::vector<Weight>* into) {
  for (const Value& value : from.constants()) {
    Tensor tensor = value.constant();
    const std::string& name = names.of(value);
    const std::string* outer = names.offered(tensor.get());
    if (outer && *outer == name) continue;
    TN_TRY(plain, tensor.dense(services.graph->context(from.raw)));
    bool literal = int_of(value.note(kNoteLiteral), 0) != 0;
    auto note_train = [&](onnx::TensorProto& header) {
      tn_any train = value.note(kNoteTrain);
      if (literal || train.tag == TN_ANY_NONE) return;
      add_metadata(header, kMetadataTrain, int_of(train, 0) != 0 ? "1" : "0");
    };
    if (into && !literal) {
      Weight& weight = into->emplace_back();
      TN_CHECK(write_header(plain, name, weight.header));
      note_train(weight.header);
      weight.tensor = plain;
    } else {
      onnx::TensorProto made;
      TN_CHECK(write_header(plain, name, made));
      note_train(made);
      made.set_raw_data(plain.data<char>(), services.tensor->bytes(plain.get()));
      if (literal) {
        write_constant(made, *to.add_node());
      } else {
        to.add_initializer()->Swap(&made);
      }
    }
    names.offer(tensor.get(), name);
  }
  return {};
}

void Exporter::notes(Graph from) {
  auto text = [&](std::string_view key) { return text_note(from, 0, key); };
  if (std::string producer = text(kNoteProducer); !producer.empty()) {
    model.set_producer_name(producer);
    model.set_producer_version(text(kNoteProducerVersion));
  }
  if (std::string domain = text(kNoteDomain); !domain.empty()) model.set_domain(domain);
  if (std::string doc = text(kNoteModelDoc); !doc.empty()) model.set_doc_string(doc);
  if (std::string doc = text(kNoteDoc); !doc.empty()) model.mutable_graph()->set_doc_string(doc);
  for (uint64_t i = 0, n = services.graph->note_count(from.raw, 0); i < n; ++i) {
    std::string key(view(services.graph->note_key(from.raw, 0, i)));
    tn_any any{};
    Status ignored(services.graph->note(from.raw, 0, str(key), &any));
    if (key == kNoteModelVersion) model.set_model_version(int_of(any, 0));
    if (key.rfind(kNoteGraphMetadata, 0) == 0)
      add_metadata(*model.mutable_graph(), key.substr(kNoteGraphMetadata.size()), text_of(any));
    if (key.rfind(kNoteMetadata, 0) != 0) continue;
    add_metadata(model, key.substr(kNoteMetadata.size()), text_of(any));
  }
  std::vector<Value> ins = from.list(TN_LIST_STATES, 0), outs = from.list(TN_LIST_STATES, 1);
  std::vector<Value> outputs = from.outputs();
  for (size_t i = 0; i < ins.size(); ++i) {
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (!(outputs[o] == outs[i])) continue;
      add_metadata(model, cat(kMetadataState, ins[i].name()), from.output_name(o));
      break;
    }
  }
}

Status Exporter::functions(Graph from) {
  for (uint64_t i = 0, n = services.graph->count(from.raw, TN_LIST_FUNCTIONS); i < n; ++i) {
    tn_str domain{}, type{};
    const tn_graph* raw = nullptr;
    const tn_graph* vjp = nullptr;
    TN_CHECK(services.graph->function_at(from.raw, i, &domain, &type, &raw, &vjp));
    Graph body{raw};
    ScopeNames names(nullptr);
    onnx::FunctionProto& to = *model.add_functions();
    to.set_domain(std::string(view(domain)));
    to.set_name(std::string(view(type)));
    for (const Value& value : body.inputs()) {
      names.bind(value, std::string(value.name()));
      to.add_input(names.of(value));
    }
    onnx::GraphProto graph;
    TN_CHECK(fill(body, names, graph, nullptr).in(cat("function ", view(type))));
    for (onnx::TensorProto& tensor : *graph.mutable_initializer())
      write_constant(tensor, *to.add_node());  // a function has no initializers
    for (onnx::NodeProto& made : *graph.mutable_node())
      to.add_node()->Swap(&made);
    for (const auto& output : graph.output())
      to.add_output(output.name());
  }
  return {};
}

}  // namespace tenon::onnx_plugin
