// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builder: a graph made node by node, or from parts of others; build() gives the model.

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tenon/role/layer.h"

#include "tenon/cxx/component.hpp"
#include "tenon/cxx/model.hpp"

namespace tenon::cxx {

class Builder {
 public:
  explicit Builder(const SessionPtr& session) {
    tn_graph* raw = nullptr;
    check(session->graph->create(session->ctx(), &raw));
    graph_ = Handle<tn_graph>(session, raw, session->graph->release);
    check(session->edit->begin(raw, &edit_));
  }
  Builder(Builder&& other) noexcept
      : graph_(std::move(other.graph_)), edit_(std::exchange(other.edit_, nullptr)) {}
  Builder& operator=(Builder&& other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(edit_, other.edit_);
    return *this;
  }
  ~Builder() {
    if (edit_) edits().rollback(edit_);
  }

  // dims: sizes, and names of sizes that are known at run time ("N").
  tn_value_id input(const std::string& name, uint32_t dtype, const Json& dims) {
    std::vector<int64_t> sizes;
    std::deque<std::string> names;
    std::vector<tn_str> symbols;
    for (const Json& dim : dims) {
      if (!dim.is_string() && !(dim.is_number_integer() && dim >= TN_DIM_UNKNOWN))
        invalid(cat("input ", name, ": expected whole sizes, or names of sizes, got ", dump(dim)));
      sizes.push_back(dim.is_string() ? TN_DIM_UNKNOWN : dim.get<int64_t>());
      names.push_back(dim.is_string() ? dim.get<std::string>() : "");
      symbols.push_back(str(names.back()));
    }
    tn_type type{};
    type.struct_size = sizeof type;
    type.dtype = dtype;
    type.rank = static_cast<uint32_t>(sizes.size());
    type.dims = sizes.data();
    type.symbols = symbols.data();
    tn_value_id value = 0;
    check(edits().add_input(edit(), str(name), &type, &value));
    return value;
  }
  // A copy: the tensor may be written to afterwards.
  tn_value_id constant(const Tensor& tensor, std::string_view name = "constant") {
    Tensor copy = Tensor::copy_of(session(), *tensor.view());
    tn_value_id value = 0;
    check(edits().add_constant(edit(), str(name), copy.raw(), &value));
    return value;
  }
  // attributes: a JSON object; {"dtype": "float32"} stands for an element type. bodies: attributes
  // that are graphs.
  std::vector<tn_value_id> node(const std::string& domain,
                                const std::string& type,
                                const std::vector<tn_value_id>& inputs,
                                uint64_t n_outputs,
                                const Json& attributes,
                                const std::vector<std::pair<std::string, Model>>& bodies = {}) {
    Attributes given(attributes);
    for (const auto& [name, body] : bodies) {
      given.names.push_back(str(name));
      given.values.push_back({TN_ANY_GRAPH, 0, 1, {.p = body.get()}});
    }
    tn_node_desc desc{sizeof desc,
                      0,
                      str(domain),
                      str(type),
                      str(""),
                      str(""),
                      inputs.data(),
                      inputs.size(),
                      n_outputs,
                      given.names.data(),
                      given.values.data(),
                      given.names.size(),
                      nullptr};
    std::vector<tn_value_id> made(n_outputs);
    tn_node_id id = 0;
    check(edits().add_node(edit(), &desc, &id, made.data()));
    return made;
  }
  // What a layer writes for these inputs (0: absent): its parameters are NAME.weight and so on.
  std::vector<tn_value_id> layer(const Component& layer,
                                 const std::string& name,
                                 uint64_t seed,
                                 const std::vector<tn_value_id>& inputs,
                                 uint64_t n_outputs) {
    void* self = nullptr;
    const auto* table = layer.table<tn_layer>("tenon.layer/1", &self);
    tn_layer_use use{sizeof use, 0, str(name), seed, inputs.size(), inputs.data(), n_outputs};
    std::vector<tn_value_id> made(n_outputs);
    check(table->build(self, edit(), &use, made.data()));
    return made;
  }
  // A function of the graph, called by nodes function:TYPE. False: there is one of this name.
  bool add_function(const std::string& type, const Model& body, const Model& vjp) {
    tn_status* failed =
        edits().add_function(edit(), str("function"), str(type), body.get(), vjp.get());
    if (failed && tenon_status_code(failed) == TN_ALREADY_EXISTS) {
      tenon_status_release(failed);
      return false;
    }
    check(failed);
    return true;
  }
  Port type_of(tn_value_id value) const {
    return Model::port_in(*session(), edits().graph(edit()), value);
  }
  void output(const std::string& name, tn_value_id value) {
    check(edits().add_output(edit(), str(name), value));
  }
  // Copies a model's nodes in over these inputs; its outputs.
  std::vector<tn_value_id> splice(const Model& model, const std::vector<tn_value_id>& inputs) {
    const tn_host_graph& graphs = model.services();
    uint64_t n_inputs = graphs.count(model.get(), TN_LIST_INPUTS);
    uint64_t n_outputs = graphs.count(model.get(), TN_LIST_OUTPUTS);
    if (inputs.size() != n_inputs)
      invalid(cat("splice: expected ", n_inputs, " inputs, got ", inputs.size()));
    std::vector<tn_value_id> map;
    for (uint64_t i = 0; i < n_inputs; ++i) {
      map.push_back(graphs.value_at(model.get(), TN_LIST_INPUTS, i, 0));
      map.push_back(inputs[i]);
    }
    for (uint64_t i = 0; i < n_outputs; ++i) {
      tn_value_id output = graphs.value_at(model.get(), TN_LIST_OUTPUTS, i, 0);
      tn_value_id given = 0;  // an output may be an input
      for (uint64_t k = 0; k < n_inputs && !given; ++k)
        given = map[2 * k] == output ? inputs[k] : 0;
      map.push_back(output);
      map.push_back(given);
    }
    check(edits().splice(edit(), model.get(), str(""), map.data(), map.size() / 2));
    std::vector<tn_value_id> outputs;
    for (uint64_t i = n_inputs; i < n_inputs + n_outputs; ++i)
      outputs.push_back(map[2 * i + 1]);
    return outputs;
  }
  // Verifies; the builder is of no use afterwards.
  Model build() {
    check(edits().commit(std::exchange(edit_, nullptr)));
    session()->graph->retain(graph_.get());
    return {session(), graph_.get()};
  }
  const SessionPtr& session() const { return graph_.session(); }
  tn_edit* edit() const {
    if (!edit_) throw Error(TN_FAILED_PRECONDITION, "this graph has been built already");
    return edit_;
  }

 private:
  struct Attributes {
    std::vector<tn_str> names;
    std::vector<tn_any> values;
    explicit Attributes(const Json& object) {
      for (const auto& [key, value] : object.items()) {
        keys_.push_back(key);
        names.push_back(str(keys_.back()));
        values.push_back(read(key, value));
      }
    }

   private:
    tn_any read(const std::string& key, const Json& value) {
      if (value.is_boolean()) return {TN_ANY_BOOL, 0, 1, {.i = value.get<bool>()}};
      if (value.is_number_integer()) return {TN_ANY_I64, 0, 1, {.i = value.get<int64_t>()}};
      if (value.is_number()) return {TN_ANY_F64, 0, 1, {.f = value.get<double>()}};
      if (value.is_object() && value.contains("dtype"))
        return {TN_ANY_DTYPE, 0, 1, {.u = dtype_of(value["dtype"].get<std::string>())}};
      if (value.is_string()) {
        const std::string& text = keys_.emplace_back(value.get<std::string>());
        return {TN_ANY_TEXT, 0, text.size(), {.p = text.data()}};
      }
      const bool is_list = value.is_array() || (value.is_object() && value.empty());
      if (!is_list) invalid(cat("attribute ", key, ": expected numbers, texts or a list of them"));
      return read_list(key, value);
    }
    // Whole numbers, numbers or texts; nothing is a list of whole numbers.
    tn_any read_list(const std::string& key, const Json& value) {
      auto are_all = [&](auto is_one) { return std::all_of(value.begin(), value.end(), is_one); };
      if (are_all([](const Json& one) { return one.is_number_integer(); })) {
        std::vector<int64_t>& list = ints_.emplace_back();
        for (const Json& one : value)
          list.push_back(one);
        return {TN_ANY_I64S, 0, list.size(), {.p = list.data()}};
      }
      if (are_all([](const Json& one) { return one.is_number(); })) {
        const auto& list = floats_.emplace_back(value.get<std::vector<double>>());
        return {TN_ANY_F64S, 0, list.size(), {.p = list.data()}};
      }
      if (!are_all([](const Json& one) { return one.is_string(); }))
        invalid(cat("attribute ", key, ": expected numbers alone or texts alone in a list, got ",
                    dump(value)));
      std::vector<tn_str>& list = texts_.emplace_back();
      for (const Json& one : value)
        list.push_back(str(keys_.emplace_back(one.get<std::string>())));
      return {TN_ANY_TEXTS, 0, list.size(), {.p = list.data()}};
    }
    std::deque<std::string> keys_;
    std::deque<std::vector<int64_t>> ints_;
    std::deque<std::vector<double>> floats_;
    std::deque<std::vector<tn_str>> texts_;
  };

  const tn_host_graph_edit& edits() const { return *session()->edit; }
  Handle<tn_graph> graph_;
  tn_edit* edit_ = nullptr;
};

}  // namespace tenon::cxx
