// SPDX-License-Identifier: Apache-2.0
// Graphs built from Python: one edit, committed when the model is asked for.
#include <algorithm>
#include <deque>
#include <optional>

#include <pybind11/stl.h>

#include "tenon/role/layer.h"

#include "tenon/arrays/graph.hpp"

#include "model.hpp"

namespace tenon::python {
namespace {

// A type by name: NumPy has no object for some of them.
struct ElementType {
  explicit ElementType(const std::string& name) : dtype(dtype_of(name)) {}
  uint32_t dtype;
};

// NumPy's single numbers and texts as Python's.
py::object as_plain(py::handle value) {
  const bool is_numpys = py::isinstance(value, py::module_::import("numpy").attr("generic"));
  return is_numpys ? value.attr("item")() : py::reinterpret_borrow<py::object>(value);
}

// An attribute from a Python value, with what it points at.
class Attribute {
 public:
  Attribute(const SessionPtr& session, const std::string& name, py::handle given) {
    const py::object value = as_plain(given);
    if (py::isinstance<py::bool_>(value)) {
      any_ = {TN_ANY_BOOL, 0, 1, {.i = value.cast<bool>()}};
    } else if (py::isinstance<py::int_>(value)) {
      any_ = {TN_ANY_I64, 0, 1, {.i = value.cast<int64_t>()}};
    } else if (py::isinstance<py::float_>(value)) {
      any_ = {TN_ANY_F64, 0, 1, {.f = value.cast<double>()}};
    } else if (py::isinstance<py::str>(value)) {
      text_ = value.cast<std::string>();
      any_ = {TN_ANY_TEXT, 0, text_.size(), {.p = text_.data()}};
    } else if (py::isinstance<py::dtype>(value)) {
      any_ = {TN_ANY_DTYPE, 0, 1, {.u = dtype_of(value.cast<py::dtype>())}};
    } else if (py::isinstance<ElementType>(value)) {
      any_ = {TN_ANY_DTYPE, 0, 1, {.u = value.cast<ElementType>().dtype}};
    } else if (py::isinstance<Model>(value)) {
      any_ = {TN_ANY_GRAPH, 0, 1, {.p = value.cast<ModelPtr>()->get()}};
    } else if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
      auto items = value.cast<std::vector<py::object>>();
      std::transform(items.begin(), items.end(), items.begin(), as_plain);
      read_list(name, items);
    } else {
      tensor_ = tensor_from(session, value, cat("attribute ", name));
      any_ = {TN_ANY_TENSOR, 0, 1, {.p = tensor_->raw()}};
    }
  }
  Attribute(const Attribute&) = delete;
  Attribute& operator=(const Attribute&) = delete;
  const tn_any& any() const { return any_; }

 private:
  void read_list(const std::string& name, const std::vector<py::object>& items) {
    auto all = [&](auto is) { return std::all_of(items.begin(), items.end(), is); };
    if (all([](const py::object& o) { return py::isinstance<py::int_>(o); })) {
      for (const py::object& item : items)
        ints_.push_back(item.cast<int64_t>());
      any_ = {TN_ANY_I64S, 0, ints_.size(), {.p = ints_.data()}};
    } else if (all([](const py::object& o) { return py::isinstance<py::str>(o); })) {
      for (const py::object& item : items)
        texts_.push_back(item.cast<std::string>());
      for (const std::string& text : texts_)
        strs_.push_back(str(text));
      any_ = {TN_ANY_TEXTS, 0, strs_.size(), {.p = strs_.data()}};
    } else if (all([](const py::object& o) { return PyNumber_Check(o.ptr()) != 0; })) {
      for (const py::object& item : items)
        floats_.push_back(item.cast<double>());
      any_ = {TN_ANY_F64S, 0, floats_.size(), {.p = floats_.data()}};
    } else {
      invalid(cat("attribute ", name, ": expected a list of numbers or of texts"));
    }
  }
  tn_any any_{};
  std::string text_;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
  std::deque<std::string> texts_;
  std::vector<tn_str> strs_;
  TensorPtr tensor_;
};

using arrays::Json;

// What 64 bits do not hold, with a sign or without, is a number all the same, as it is beside
// floating-point values.
Json number_of(const py::object& whole) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  if (overflow == 0) return number;
  const unsigned long long unsigned_number = PyLong_AsUnsignedLongLong(whole.ptr());
  if (!PyErr_Occurred()) return unsigned_number;
  PyErr_Clear();
  const double real = PyLong_AsDouble(whole.ptr());
  if (!PyErr_Occurred()) return real;
  PyErr_Clear();
  invalid("expected a number that float64 can hold, got an integer beyond it");
}

// An argument of an array function: a value of the graph has a number and may be weak.
Json argument_of(py::handle given) {
  if (given.is_none()) return nullptr;
  if (py::isinstance<py::bool_>(given)) return given.cast<bool>();
  if (py::isinstance<py::float_>(given)) return given.cast<double>();
  if (py::isinstance<py::str>(given)) return given.cast<std::string>();
  if (py::hasattr(given, "weak"))
    return {{"value", given.attr("id").cast<uint64_t>()},
            {"weak", given.attr("weak").cast<bool>()}};
  // An array of NumPy says that it is an integer, and may be none.
  if (PyIndex_Check(given.ptr())) {
    if (auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(given.ptr())))
      return number_of(whole);
    PyErr_Clear();
  }
  Json list = Json::array();
  if (PySequence_Check(given.ptr()) || py::isinstance<py::iterable>(given)) {
    for (py::handle item : given)
      list.push_back(argument_of(item));
    return list;
  }
  if (PyNumber_Check(given.ptr()))
    return py::float_(py::reinterpret_borrow<py::object>(given)).cast<double>();
  invalid(cat("expected numbers, texts or lists of them, got ", Py_TYPE(given.ptr())->tp_name));
}
py::object object_of(const Json& value) {
  return py::module_::import("json").attr("loads")(value.dump());
}

class Builder {
 public:
  explicit Builder(const SessionPtr& session) : session_(session) {
    tn_graph* raw = nullptr;
    session_->check(session_->graph->create(session_->ctx(), &raw));
    graph_ = Handle<tn_graph>(session_, raw, session_->graph->release);
    session_->check(session_->edit->begin(raw, &edit_));
    arrays_.emplace(*session_, edit_);
  }
  ~Builder() {
    if (edit_) session_->edit->rollback(edit_);
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  uint64_t add_input(const std::string& name, const std::string& dtype, const py::object& shape) {
    tn_type type{};
    type.struct_size = sizeof type;
    type.dtype = dtype_of(dtype);
    type.rank = TN_RANK_UNKNOWN;
    std::vector<int64_t> dims;
    std::deque<std::string> names;
    std::vector<tn_str> symbols;
    if (!shape.is_none()) {
      for (py::handle dim : shape) {
        bool known = py::isinstance<py::int_>(dim);
        dims.push_back(known ? dim.cast<int64_t>() : TN_DIM_UNKNOWN);
        names.push_back(py::isinstance<py::str>(dim) ? dim.cast<std::string>() : "");
        symbols.push_back(str(names.back()));
      }
      type.rank = static_cast<uint32_t>(dims.size());
      type.dims = dims.data();
      type.symbols = symbols.data();
    }
    tn_value_id value = 0;
    session_->check(session_->edit->add_input(edit(), str(name), &type, &value));
    return value;
  }
  uint64_t add_constant(const std::string& name, py::handle object) {
    TensorPtr given = tensor_from(session_, object, cat("constant ", name));
    tn_tensor* copy = nullptr;  // the caller may go on writing to what was given
    session_->check(session_->tensor->copy(session_->ctx(), &given->view(), &copy));
    Tensor kept(session_, copy);
    tn_value_id value = 0;
    session_->check(session_->edit->add_constant(edit(), str(name), copy, &value));
    return value;
  }
  std::vector<uint64_t> add_node(const std::string& domain,
                                 const std::string& type,
                                 const std::string& name,
                                 const std::vector<uint64_t>& inputs,
                                 uint64_t outputs,
                                 const py::dict& attributes) {
    std::deque<std::string> names;
    std::deque<Attribute> kept;
    std::vector<tn_str> attr_names;
    std::vector<tn_any> values;
    for (auto [key, value] : attributes) {
      names.push_back(key.cast<std::string>());
      attr_names.push_back(str(names.back()));
      values.push_back(kept.emplace_back(session_, names.back(), value).any());
    }
    tn_node_desc desc{sizeof(tn_node_desc),
                      0,
                      str(domain),
                      str(type),
                      str(name),
                      str(""),
                      inputs.data(),
                      inputs.size(),
                      outputs,
                      attr_names.data(),
                      values.data(),
                      values.size(),
                      nullptr};
    std::vector<uint64_t> made(outputs);
    tn_node_id node = 0;
    session_->check(
        without_gil([&] { return session_->edit->add_node(edit(), &desc, &node, made.data()); }));
    return made;
  }
  // What a layer writes for these inputs (0: absent), with parameters NAME.weight and so on.
  std::vector<uint64_t> add_layer(const Component& layer,
                                  const std::string& name,
                                  uint64_t seed,
                                  const std::vector<uint64_t>& inputs,
                                  uint64_t outputs) {
    void* self = nullptr;
    const auto* table = layer.table<tn_layer>("tenon.layer/1", &self);
    tn_layer_use use{sizeof use, 0, str(name), seed, inputs.size(), inputs.data(), outputs};
    std::vector<uint64_t> made(outputs);
    session_->check(without_gil([&] { return table->build(self, edit(), &use, made.data()); }));
    return made;
  }
  // An array function by name; the values that it gives.
  std::vector<uint64_t> call(const std::string& name, const py::args& given, const py::dict& more) {
    Json positional = argument_of(given);
    Json named = Json::object();
    for (auto [key, value] : more)
      named[key.cast<std::string>()] = argument_of(value);
    edit();
    return without_gil([&] { return arrays_->call(name, positional, named); });
  }
  uint64_t number(py::handle given, const std::string& dtype) {
    edit();
    return arrays_->number(argument_of(given), dtype_of(dtype)).id;
  }
  uint64_t numbers(const std::vector<int64_t>& shape, const std::vector<double>& elements) {
    edit();
    return arrays_->numbers(shape, elements).id;
  }
  uint64_t integers(const std::vector<int64_t>& list) {
    edit();
    return arrays_->integers(list).id;
  }
  void add_output(const std::string& name, uint64_t value) {
    session_->check(session_->edit->add_output(edit(), str(name), value));
  }
  // An operator that is a graph, with its gradient as a graph of its own.
  void add_function(const std::string& type, const Model& body, const Model& vjp) {
    session_->check(
        session_->edit->add_function(edit(), str("function"), str(type), body.get(), vjp.get()));
  }
  void pair_state(uint64_t input, uint64_t output) {
    session_->check(session_->edit->pair_state(edit(), input, output));
  }
  // As a port, under the value's own name.
  py::tuple type_of(uint64_t value) const {
    const tn_graph* graph = session_->edit->graph(edit());
    return type_in(session_, graph, value, view(session_->graph->value_name(graph, value)));
  }
  // Copies the model's nodes in over these inputs; gives its outputs.
  std::vector<uint64_t> splice(const Model& model,
                               const std::string& scope,
                               const std::vector<uint64_t>& inputs) {
    const tn_host_graph& graphs = *session_->graph;
    uint64_t n_inputs = graphs.count(model.get(), TN_LIST_INPUTS);
    if (inputs.size() != n_inputs)
      invalid(cat("splice: expected ", n_inputs, " inputs, got ", inputs.size()));
    std::vector<tn_value_id> map;
    for (uint64_t i = 0; i < n_inputs; ++i) {
      map.push_back(graphs.value_at(model.get(), TN_LIST_INPUTS, i, 0));
      map.push_back(inputs[i]);
    }
    uint64_t n_outputs = graphs.count(model.get(), TN_LIST_OUTPUTS);
    for (uint64_t i = 0; i < n_outputs; ++i) {
      tn_value_id output = graphs.value_at(model.get(), TN_LIST_OUTPUTS, i, 0);
      auto same = [&](size_t k) { return map[2 * k] == output; };
      size_t k = 0;  // an output may be an input
      while (k < n_inputs && !same(k))
        ++k;
      map.push_back(output);
      map.push_back(k < n_inputs ? inputs[k] : 0);
    }
    session_->check(without_gil([&] {
      return session_->edit->splice(edit(), model.get(), str(scope), map.data(), map.size() / 2);
    }));
    std::vector<uint64_t> outputs;
    for (size_t i = n_inputs; i < n_inputs + n_outputs; ++i)
      outputs.push_back(map[2 * i + 1]);
    return outputs;
  }
  ModelPtr build() {
    tn_edit* ended = edit();
    edit_ = nullptr;
    session_->check(without_gil([&] { return session_->edit->commit(ended); }));
    session_->graph->retain(graph_.get());
    return std::make_shared<Model>(session_, graph_.get());
  }

 private:
  tn_edit* edit() const {
    if (!edit_) throw Error(TN_FAILED_PRECONDITION, "this graph has been built already");
    return edit_;
  }
  SessionPtr session_;
  Handle<tn_graph> graph_;
  tn_edit* edit_ = nullptr;
  std::optional<arrays::Graph> arrays_;
};

}  // namespace

void bind_builder(py::module_& module) {
  module.def("array_functions", [] { return object_of(arrays::description()); });
  py::class_<ElementType>(module, "ElementType").def(py::init<const std::string&>());
  py::class_<Builder>(module, "Builder")
      .def(py::init<const SessionPtr&>())
      .def("add_input", &Builder::add_input)
      .def("add_constant", &Builder::add_constant)
      .def("add_node", &Builder::add_node)
      .def("add_layer", &Builder::add_layer)
      .def("call", [](Builder& self, const std::string& name, const py::args& given,
                      const py::kwargs& named) { return self.call(name, given, named); })
      .def("number", &Builder::number)
      .def("numbers", &Builder::numbers)
      .def("integers", &Builder::integers)
      .def("add_output", &Builder::add_output)
      .def("add_function", &Builder::add_function)
      .def("pair_state", &Builder::pair_state)
      .def("type_of", &Builder::type_of)
      .def("splice", &Builder::splice)
      .def("build", &Builder::build);
}

}  // namespace tenon::python
