// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models, plans, components and the builder of graphs, as the Python layer sees them. Options are
// JSON texts; what JSON cannot say (components, models, tensors) comes beside them by name.

#include "interrupt.hpp"
#include "tensor.hpp"

namespace tenon::python {

class Model {
 public:
  Model(const SessionPtr& session, tn_graph* taken)
      : graph_(session, taken, session->graph->release) {}
  const tn_graph* get() const { return graph_.get(); }
  const SessionPtr& session() const { return graph_.session(); }
  const tn_host_graph& services() const { return *session()->graph; }

 private:
  Handle<tn_graph> graph_;
};
using ModelPtr = std::shared_ptr<Model>;

class Component {
 public:
  Component(const SessionPtr& session,
            const std::string& role,
            const std::string& id,
            const std::string& options,
            const py::dict& objects);
  // Of this program: see tn_host_component.lend.
  Component(const SessionPtr& session,
            std::string_view role,
            std::string_view id,
            const void* table,
            void* self,
            void(TN_CALL* destroy)(void* self));
  tn_component_ref* raw() const { return ref_.get(); }
  const SessionPtr& session() const { return ref_.session(); }
  template <class Table>
  const Table* table(std::string_view role, void** out_self) const {
    const void* found = session()->component->get_interface(raw(), str(role), out_self);
    if (!found) throw Error(TN_UNIMPLEMENTED, cat("expected a table for ", role));
    return static_cast<const Table*>(found);
  }

 private:
  Handle<tn_component_ref> ref_;
};

// Named values for a component, from JSON and from objects: Component, Model, array-like.
Handle<tn_options> make_options(const SessionPtr& session,
                                const std::string& json,
                                const py::dict& objects);

// One input or output: name, type, and a shape of numbers, symbols and None.
py::tuple port_of(const Model& model, tn_value_id value, std::string_view name);
py::tuple type_in(const SessionPtr& session,
                  const tn_graph* graph,
                  tn_value_id value,
                  std::string_view name);

void bind_models(py::module_& module);
void bind_plans(py::module_& module);
void bind_components(py::module_& module);
void bind_callbacks(py::module_& module);
void bind_datasets(py::module_& module);
void bind_schedules(py::module_& module);
void bind_builder(py::module_& module);
void bind_dispatch(py::module_& module);

}  // namespace tenon::python
