// SPDX-License-Identifier: Apache-2.0
// The native half of the package. Its Python half (tenon/) is what users see.
#include <pybind11/stl.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "model.hpp"

namespace tenon::python {
namespace {

// tenon.errors maps a status code to its class, and makes the exception.
void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    std::string domain = error.domain().empty() ? "python" : error.domain();
    py::object made =
        py::module_::import("tenon.errors").attr("from_status")(error.code(), domain, error.what());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  }
}

template <class Call>
std::string text_from(const SessionPtr& session, Call call) {
  TextSink text;
  session->check(without_gil([&] { return call(session->raw(), text.get()); }));
  return text.text();
}

// The argument `copy` of the array protocols: None leaves it open.
bool is_true(const py::object& copy) {
  return !copy.is_none() && copy.cast<bool>();
}

TensorPtr copy_of(const TensorPtr& tensor) {
  const SessionPtr& session = tensor->session();
  tn_tensor* raw = nullptr;
  session->check(session->tensor->copy(session->ctx(), &tensor->view(), &raw));
  return std::make_shared<Tensor>(session, raw);
}

// Pages of freed arrays, which malloc keeps between what stays.
void give_back_pages() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void bind_session(py::module_& module) {
  py::class_<Session, SessionPtr>(module, "Session")
      .def(py::init<const std::string&>())
      .def("on_log", &Session::on_log)
      .def("on_progress", &Session::on_progress)
      .def("plugins", [](const SessionPtr& s) { return text_from(s, tenon_plugin_list); })
      .def("doctor", [](const SessionPtr& s) { return text_from(s, tenon_plugin_doctor); })
      .def("trace_start", [](const SessionPtr& s) { tenon_trace_start(s->raw()); })
      .def("trace_stop", [](const SessionPtr& s) { return text_from(s, tenon_trace_stop); })
      .def("balance", [](const SessionPtr& s) { return text_from(s, tenon_plugin_balance); })
      .def("load_plugin", [](const SessionPtr& s, const std::string& path_or_id) {
        s->check(without_gil([&] { return tenon_plugin_load(s->raw(), str(path_or_id)); }));
      });
}

void bind_tensor(py::module_& module) {
  module.def("as_tensor", [](const SessionPtr& session, py::handle object) {
    return tensor_from(session, object, "argument");
  });
  py::class_<Tensor, TensorPtr>(
      module, "Tensor",
      "An array of libtenon: `.numpy()`, or any library that takes DLPack. Memory is shared.")
      .def_property_readonly(
          "dtype", [](const Tensor& t) { return dtype_name(t.dtype()); },
          "The element type by NumPy's name, as \"float32\".")
      .def_property_readonly("shape", &Tensor::shape_tuple, "The sizes of the axes.")
      .def(
          "numpy", [](const TensorPtr& t, bool writable) { return to_numpy(t, writable); },
          py::arg("writable") = false,
          "The same memory as a NumPy array; a model's own weights cannot be written.")
      .def(
          "__array__",
          [](const TensorPtr& t, const py::object& dtype, const py::object& copy) {
            py::object array = to_numpy(t, false);
            if (!dtype.is_none()) array = array.attr("astype")(dtype, py::arg("copy") = false);
            return is_true(copy) ? py::object(array.attr("copy")()) : array;
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def(
          "__dlpack__",
          [](const TensorPtr& t, const py::object&, std::optional<std::pair<int, int>> version,
             const py::object&,
             const py::object& copy) { return to_dlpack(is_true(copy) ? copy_of(t) : t, version); },
          py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
          py::arg("dl_device") = py::none(), py::arg("copy") = py::none())
      .def("__dlpack_device__", [](const Tensor& t) {
        return std::pair(t.view().device.device_type, t.view().device.device_id);
      });
}

}  // namespace
}  // namespace tenon::python

PYBIND11_MODULE(_core, module) {
  using namespace tenon::python;
  py::register_exception_translator(translate);
  module.def("give_back_pages", give_back_pages);
  module.def("version", [] { return std::string(view(tenon_version())); });
  bind_session(module);
  bind_tensor(module);
  bind_models(module);
  bind_plans(module);
  bind_components(module);
  bind_callbacks(module);
  bind_datasets(module);
  bind_schedules(module);
  bind_builder(module);
  bind_dispatch(module);
}
