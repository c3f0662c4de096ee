// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "model.hpp"

namespace tenon::python {
namespace {

struct Port {
  std::string name, type;
  uint32_t dtype = TN_DTYPE_NONE;
  bool ranked = false;
  std::vector<int64_t> dims;
};

Port read_port(const py::tuple& seen) {
  if (seen[3].cast<std::string>() != "tensor")
    return {seen[0].cast<std::string>(), "a packed list", TN_U8, true, {-1}};
  Port port{seen[0].cast<std::string>(),
            seen[1].is_none() ? "any type" : "",
            TN_DTYPE_NONE,
            !seen[2].is_none(),
            {}};
  if (!seen[1].is_none()) {
    port.type = seen[1].cast<std::string>();
    port.dtype = dtype_of(port.type);
  }
  if (!port.ranked) {
    port.type += " of any shape";
    return port;
  }
  port.type += "[";
  for (py::handle dim : seen[2]) {
    port.type += cat(port.dims.empty() ? "" : ", ", std::string(py::str(dim)));
    port.dims.push_back(py::isinstance<py::int_>(dim) ? dim.cast<int64_t>() : TN_DIM_UNKNOWN);
  }
  port.type += "]";
  return port;
}

// The stream that inputs on a device are made on: an option of backends that have streams.
int64_t input_stream_of(const std::string& options) {
  if (options.empty()) return 0;
  py::object given = py::module_::import("json").attr("loads")(options);
  return given.attr("get")("input_stream", 0).cast<int64_t>();
}

class Plan {
 public:
  // beside: another one whose options and states it has, without taps.
  Plan(const Model& model,
       const std::string& options,
       const std::vector<std::string>& taps,
       const Plan* beside) {
    const SessionPtr& session = model.session();
    const tn_host_graph& graphs = model.services();
    std::vector<tn_value_id> values;
    for (const std::string& name : taps) {
      values.push_back(graphs.find_value(model.get(), str(name)));
      if (!values.back()) throw Error(TN_NOT_FOUND, cat("taps: no value is called '", name, "'"));
    }
    py::object seen = py::cast(model, py::return_value_policy::reference);
    for (py::handle port : seen.attr("inputs")())
      inputs_.push_back(read_port(port.cast<py::tuple>()));
    for (py::handle port : seen.attr("states")())
      states_.push_back(read_port(port.cast<py::tuple>()));
    results_ = py::len(seen.attr("outputs")()) + taps.size();
    tn_plan* raw = nullptr;
    session->check(without_gil([&] {
      if (beside) return session->eval->compile_beside(beside->plan_.get(), model.get(), &raw);
      return session->eval->compile(session->ctx(), model.get(), values.data(), values.size(),
                                    str(options), &raw);
    }));
    plan_ = Handle<tn_plan>(session, raw, session->eval->release);
    input_stream_ = input_stream_of(options);
  }

  std::vector<TensorPtr> run(const py::args& args, const py::kwargs& named) const {
    std::vector<TensorPtr> given = read(args, named);
    std::vector<const DLTensor*> views = views_of(given);
    Results results(session(), results_);
    run_interruptible<PlainCall>(session(), [&](const tn_cancel* cancel) {
      return session()->eval->run(plan_.get(), views.data(), views.size(), results.get(), cancel);
    });
    return results.take();
  }
  void prepare(const py::args& args, const py::kwargs& named) const {
    std::vector<TensorPtr> given = read(args, named);
    std::vector<const DLTensor*> views = views_of(given);
    session()->check(without_gil(
        [&] { return session()->eval->prepare(plan_.get(), views.data(), views.size()); }));
  }
  std::string describe() const {
    TextSink text;
    session()->check(
        without_gil([&] { return session()->eval->describe(plan_.get(), text.get()); }));
    return text.text();
  }
  std::string profile(const py::args& args, const py::kwargs& named) const {
    std::vector<TensorPtr> given = read(args, named);
    std::vector<const DLTensor*> views = views_of(given);
    TextSink text;
    session()->check(without_gil([&] {
      return session()->eval->profile(plan_.get(), views.data(), views.size(), text.get());
    }));
    return text.text();
  }
  void set_state(const std::string& name, py::handle value) const {
    TensorPtr tensor = tensor_from(session(), value, cat("state ", name), state(name).dtype);
    session()->check(without_gil(
        [&] { return session()->eval->state_set(plan_.get(), str(name), &tensor->view()); }));
  }
  TensorPtr get_state(const std::string& name) const {
    const Port& port = state(name);
    DLTensor proto{nullptr,
                   {kDLCPU, 0},
                   static_cast<int32_t>(port.dims.size()),
                   dl_dtype(port.dtype),
                   const_cast<int64_t*>(port.dims.data()),
                   nullptr,
                   0};
    tn_tensor* raw = nullptr;
    session()->check(session()->tensor->alloc(session()->ctx(), &proto, &raw));
    auto tensor = std::make_shared<Tensor>(session(), raw);
    DLTensor out = tensor->view();
    session()->check(
        without_gil([&] { return session()->eval->state_get(plan_.get(), str(name), &out); }));
    return tensor;
  }

 private:
  const SessionPtr& session() const { return plan_.session(); }
  const Port& state(const std::string& name) const {
    for (const Port& port : states_) {
      if (port.name == name) return port;
    }
    throw Error(TN_NOT_FOUND, cat("no state is called '", name, "'"));
  }
  TensorPtr read_one(const Port& port, py::handle object) const {
    TensorPtr tensor =
        tensor_from(session(), object, cat("input ", port.name), port.dtype, input_stream_);
    bool agrees = port.dtype == TN_DTYPE_NONE || port.dtype == tensor->dtype();
    std::span<const int64_t> shape = tensor->shape();
    if (port.ranked) {
      agrees = agrees && shape.size() == port.dims.size();
      for (size_t i = 0; agrees && i < shape.size(); ++i)
        agrees = port.dims[i] < 0 || port.dims[i] == shape[i];
    }
    if (!agrees) {
      invalid(cat("input ", port.name, ": expected ", port.type, ", got ",
                  dtype_name(tensor->dtype()), shape_text(shape)));
    }
    return tensor;
  }
  std::vector<TensorPtr> read(const py::args& args, const py::kwargs& named) const {
    if (args.size() > inputs_.size())
      invalid(cat("expected ", inputs_.size(), " inputs, got ", args.size()));
    std::vector<TensorPtr> given(inputs_.size());
    for (size_t i = 0; i < args.size(); ++i)
      given[i] = read_one(inputs_[i], args[i]);
    for (auto [key, object] : named) {
      auto name = key.cast<std::string>();
      size_t i = 0;
      while (i < inputs_.size() && inputs_[i].name != name)
        ++i;
      if (i == inputs_.size()) invalid(cat("expected inputs ", names(), ", got '", name, "'"));
      if (given[i]) invalid(cat("input ", name, ": given twice, by position and by name"));
      given[i] = read_one(inputs_[i], object);
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i])
        invalid(cat("input ", inputs_[i].name, ": expected ", inputs_[i].type, ", got nothing"));
    }
    return given;
  }
  static std::vector<const DLTensor*> views_of(const std::vector<TensorPtr>& tensors) {
    std::vector<const DLTensor*> views;
    for (const TensorPtr& tensor : tensors)
      views.push_back(&tensor->view());
    return views;
  }
  std::string names() const {
    std::string all;
    for (const Port& port : inputs_)
      all += cat(all.empty() ? "" : ", ", port.name);
    return all.empty() ? "(none)" : all;
  }

  Handle<tn_plan> plan_;
  std::vector<Port> inputs_, states_;
  size_t results_ = 0;
  int64_t input_stream_ = 0;
};

}  // namespace

void bind_plans(py::module_& module) {
  py::class_<Plan>(module, "Plan")
      .def(py::init<const Model&, const std::string&, const std::vector<std::string>&,
                    const Plan*>(),
           py::arg("model"), py::arg("options"), py::arg("taps"), py::arg("beside") = nullptr)
      .def("tensors", &Plan::run)
      .def("arrays",
           [](const Plan& plan, const py::args& args, const py::kwargs& named) {
             py::list arrays;
             for (const TensorPtr& tensor : plan.run(args, named))
               arrays.append(to_numpy(tensor, true));
             return arrays;
           })
      .def("prepare", &Plan::prepare)
      .def("describe", &Plan::describe)
      .def("profile", &Plan::profile)
      .def("set_state", &Plan::set_state)
      .def("get_state", [](const Plan& plan, const std::string& name) {
        return to_numpy(plan.get_state(name), true);
      });
}

}  // namespace tenon::python
