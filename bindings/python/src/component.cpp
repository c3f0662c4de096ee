// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "tenon/role/dataset.h"
#include "tenon/role/metric.h"

#include "model.hpp"

namespace tenon::python {
namespace {

constexpr std::string_view kDataset = "tenon.dataset/1";
constexpr std::string_view kMetric = "tenon.metric/1";
using ComponentPtr = std::shared_ptr<Component>;

std::string list(const SessionPtr& session, const std::string& role) {
  TextSink text;
  session->check(
      without_gil([&] { return session->component->list(session->ctx(), str(role), text.get()); }));
  return text.text();
}

std::string for_file(const SessionPtr& session, const std::string& role, const std::string& path) {
  TextSink id;
  session->check(without_gil([&] {
    return session->component->for_file(session->ctx(), str(role), str(path), id.get());
  }));
  return id.text();
}

// None: a stream.
py::object dataset_size(const Component& dataset) {
  void* self = nullptr;
  const auto* table = dataset.table<tn_dataset>(kDataset, &self);
  uint64_t size = without_gil([&] { return table->size(self); });
  return size == TN_SIZE_UNKNOWN ? py::object(py::none()) : py::object(py::int_(size));
}

std::string dataset_fields(const Component& dataset) {
  void* self = nullptr;
  const auto* table = dataset.table<tn_dataset>(kDataset, &self);
  TextSink text;
  dataset.session()->check(without_gil([&] { return table->fields(self, text.get()); }));
  return text.text();
}

py::list dataset_batch(const Component& dataset,
                       const std::vector<uint64_t>& index,
                       uint64_t seed,
                       size_t fields) {
  void* self = nullptr;
  const auto* table = dataset.table<tn_dataset>(kDataset, &self);
  Results results(dataset.session(), fields);
  run_interruptible(dataset.session(), [&](const tn_cancel*) {
    return table->batch(self, index.data(), index.size(), seed, results.get());
  });
  py::list arrays;
  for (const TensorPtr& tensor : results.take()) {
    if (!tensor) throw Error(TN_INTERNAL, "the data set left a field out");
    arrays.append(to_numpy(tensor, true));
  }
  return arrays;
}

std::vector<TensorPtr> tensors_of(const SessionPtr& session, const py::list& objects) {
  std::vector<TensorPtr> tensors;
  for (py::handle object : objects)
    tensors.push_back(tensor_from(session, object, cat("tensor ", tensors.size())));
  return tensors;
}

void metric_update(const Component& metric, const py::list& outputs, const py::list& labels) {
  void* self = nullptr;
  const auto* table = metric.table<tn_metric>(kMetric, &self);
  std::vector<TensorPtr> tensors[] = {tensors_of(metric.session(), outputs),
                                      tensors_of(metric.session(), labels)};
  std::vector<const DLTensor*> views[2];
  for (int side = 0; side < 2; ++side) {
    for (const TensorPtr& tensor : tensors[side])
      views[side].push_back(&tensor->view());
  }
  metric.session()->check(without_gil([&] {
    return table->update(self, views[0].data(), views[0].size(), views[1].data(), views[1].size());
  }));
}

std::pair<double, bool> metric_value(const Component& metric) {
  void* self = nullptr;
  const auto* table = metric.table<tn_metric>(kMetric, &self);
  double value = 0;
  int32_t higher_is_better = 0;
  metric.session()->check(
      without_gil([&] { return table->value(self, &value, &higher_is_better); }));
  return {value, higher_is_better != 0};
}

}  // namespace

Handle<tn_options> make_options(const SessionPtr& session,
                                const std::string& json,
                                const py::dict& objects) {
  tn_options* raw = nullptr;
  session->check(session->options->create(session->ctx(), &raw));
  Handle<tn_options> options(session, raw, session->options->release);
  session->check(without_gil([&] { return session->options->parse(raw, str(json)); }));
  for (auto [key, object] : objects) {
    auto name = key.cast<std::string>();
    tn_any value{TN_ANY_NONE, 0, 1, {.p = nullptr}};
    TensorPtr tensor;  // options retain what they are given
    if (py::isinstance<Component>(object)) {
      value.tag = TN_ANY_COMPONENT;
      value.v.p = object.cast<ComponentPtr>()->raw();
    } else if (py::isinstance<Model>(object)) {
      value.tag = TN_ANY_GRAPH;
      value.v.p = object.cast<ModelPtr>()->get();
    } else {
      tensor = tensor_from(session, object, cat("option ", name));
      value.tag = TN_ANY_TENSOR;
      value.v.p = tensor->raw();
    }
    session->check(without_gil([&] { return session->options->set(raw, str(name), value); }));
  }
  return options;
}

Component::Component(const SessionPtr& session,
                     const std::string& role,
                     const std::string& id,
                     const std::string& options,
                     const py::dict& objects) {
  Handle<tn_options> given = make_options(session, options, objects);
  tn_component_ref* raw = nullptr;
  session->check(without_gil([&] {
    return session->component->create(session->ctx(), str(role), str(id), given.get(), &raw);
  }));
  ref_ = Handle<tn_component_ref>(session, raw, session->component->release);
}

Component::Component(const SessionPtr& session,
                     std::string_view role,
                     std::string_view id,
                     const void* table,
                     void* self,
                     void(TN_CALL* destroy)(void* self)) {
  tn_component_ref* raw = nullptr;
  session->check(without_gil([&] {
    return session->component->lend(session->ctx(), str(role), str(id), table, self, destroy, &raw);
  }));
  ref_ = Handle<tn_component_ref>(session, raw, session->component->release);
}

void bind_components(py::module_& module) {
  module.def("components", list, py::arg("session"), py::arg("role"));
  module.def("component_for_file", for_file);
  py::class_<Component, ComponentPtr>(module, "Component")
      .def(py::init<const SessionPtr&, const std::string&, const std::string&, const std::string&,
                    const py::dict&>())
      .def("dataset_size", dataset_size)
      .def("dataset_fields", dataset_fields)
      .def("dataset_batch", dataset_batch)
      .def("metric_update", metric_update)
      .def("metric_value", metric_value);
}

}  // namespace tenon::python
