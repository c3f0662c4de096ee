// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <pybind11/stl.h>

#include "tenon/cxx/inspection.hpp"
#include "tenon/cxx/line_diff.hpp"

namespace tenon::python {
namespace {

ModelPtr load(const SessionPtr& session, const std::string& path, const std::string& options) {
  tn_graph* raw = nullptr;
  run_interruptible(session, [&](const tn_cancel* cancel) {
    return tenon_load(session->raw(), str(path), str(options), cancel, &raw);
  });
  return std::make_shared<Model>(session, raw);
}

ModelPtr parse(const SessionPtr& session, const std::string& text) {
  tn_graph* raw = nullptr;
  session->check(
      without_gil([&] { return session->graph->parse(session->ctx(), str(text), &raw); }));
  return std::make_shared<Model>(session, raw);
}

void save(const Model& model, const std::string& path, const std::string& options) {
  run_interruptible(model.session(), [&](const tn_cancel* cancel) {
    return tenon_save(model.session()->raw(), model.get(), str(path), str(options), cancel);
  });
}

std::pair<ModelPtr, std::string> apply(const Model& model,
                                       const std::string& pass,
                                       const std::string& json,
                                       const py::dict& objects) {
  const SessionPtr& session = model.session();
  Handle<tn_options> options = make_options(session, json, objects);
  TextSink report;
  tn_graph* raw = nullptr;
  run_interruptible(session, [&](const tn_cancel* cancel) {
    return tenon_apply(session->raw(), model.get(), str(pass), options.get(), cancel, report.get(),
                       &raw);
  });
  return {std::make_shared<Model>(session, raw), report.text()};
}

std::string print(const Model& model, bool data) {
  TextSink text;
  uint32_t flags = data ? TN_PRINT_DATA : 0;
  model.session()->check(
      without_gil([&] { return model.services().print(model.get(), flags, text.get()); }));
  return text.text();
}

std::string diff(const Model& before, const Model& after) {
  return cxx::diff_lines(print(before, false), print(after, false));
}

std::string inspect(const Model& model) {
  return without_gil([&] {
    return cxx::inspect(*model.session(), model.get())
        .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  });
}

bool is_state(const Model& model, tn_value_id value, uint32_t side) {
  const tn_host_graph& graphs = model.services();
  for (uint64_t i = 0; i < graphs.count(model.get(), TN_LIST_STATES); ++i) {
    if (graphs.value_at(model.get(), TN_LIST_STATES, i, side) == value) return true;
  }
  return false;
}

// State is neither given nor handed out, so it is no input and no output here.
py::list ports(const Model& model, uint32_t which, bool states) {
  const tn_host_graph& graphs = model.services();
  uint32_t side = which == TN_LIST_INPUTS ? 0 : 1;
  py::list all;
  for (uint64_t i = 0; i < graphs.count(model.get(), which); ++i) {
    tn_value_id value = graphs.value_at(model.get(), which, i, 0);
    if (is_state(model, value, side) != states) continue;
    all.append(port_of(model, value, view(graphs.io_name(model.get(), which, i))));
  }
  return all;
}

py::dict constants(const Model& model) {
  const tn_host_graph& graphs = model.services();
  const SessionPtr& session = model.session();
  py::dict all;
  for (uint64_t i = 0; i < graphs.count(model.get(), TN_LIST_CONSTANTS); ++i) {
    tn_value_id value = graphs.value_at(model.get(), TN_LIST_CONSTANTS, i, 0);
    tn_tensor* raw = graphs.constant(model.get(), value);
    session->tensor->retain(raw);
    all[py::str(std::string(view(graphs.value_name(model.get(), value))))] =
        std::make_shared<Tensor>(session, raw);
  }
  return all;
}

}  // namespace

py::tuple port_of(const Model& model, tn_value_id value, std::string_view name) {
  return type_in(model.session(), model.get(), value, name);
}

py::tuple type_in(const SessionPtr& session,
                  const tn_graph* graph,
                  tn_value_id value,
                  std::string_view name) {
  tn_type type{};
  type.struct_size = sizeof type;
  session->check(session->graph->value_type(graph, value, &type));
  py::object shape = py::none();
  if (type.rank != TN_RANK_UNKNOWN) {
    py::list dims;
    for (uint32_t i = 0; i < type.rank; ++i) {
      std::string_view symbol = type.symbols ? view(type.symbols[i]) : "";
      if (type.dims[i] >= 0)
        dims.append(type.dims[i]);
      else
        dims.append(symbol.empty() ? py::none() : py::object(py::str(std::string(symbol))));
    }
    shape = py::tuple(dims);
  }
  py::object dtype =
      type.dtype == TN_DTYPE_NONE ? py::none() : py::object(py::str(dtype_name(type.dtype)));
  static constexpr const char* kKinds[] = {"tensor", "sequence", "optional"};
  const char* kind = type.kind < 3 ? kKinds[type.kind] : "unknown";
  return py::make_tuple(std::string(name), dtype, shape, kind);
}

void bind_models(py::module_& module) {
  module.def("load", load, py::arg("session"), py::arg("path"), py::arg("options"));
  module.def("parse", parse, py::arg("session"), py::arg("text"));
  py::class_<Model, ModelPtr>(module, "Model")
      .def("save", save)
      .def("apply", apply)
      .def("text", print)
      .def("diff", diff)
      .def("inspect", inspect)
      .def("constants", constants)
      .def("inputs", [](const Model& model) { return ports(model, TN_LIST_INPUTS, false); })
      .def("states", [](const Model& model) { return ports(model, TN_LIST_INPUTS, true); })
      .def("outputs", [](const Model& model) { return ports(model, TN_LIST_OUTPUTS, false); });
}

}  // namespace tenon::python
