// SPDX-License-Identifier: Apache-2.0
#pragma once
// Components by role and id, and the options that they are made with.

#include <vector>

#include "tenon/cxx/choice.hpp"
#include "tenon/cxx/tensor.hpp"

namespace tenon::cxx {

class Component;

// Named values for a component; the component's schema checks them when it is made.
class Options {
 public:
  explicit Options(const SessionPtr& session, const Json& values = Json::object()) {
    tn_options* raw = nullptr;
    check(session->options->create(session->ctx(), &raw));
    options_ = Handle<tn_options>(session, raw, session->options->release);
    check(session->options->parse(raw, str(dump(values))));
  }
  void set(std::string_view key, tn_any value) {
    check(options_.session()->options->set(options_.get(), str(key), value));
  }
  void set(std::string_view key, const Tensor& tensor) {
    set(key, {TN_ANY_TENSOR, 0, 1, {.p = tensor.raw()}});
  }
  inline void set(std::string_view key, const Component& component);
  void set(std::string_view key, const tn_graph* graph) {
    set(key, {TN_ANY_GRAPH, 0, 1, {.p = graph}});
  }
  const tn_options* get() const { return options_.get(); }

 private:
  Handle<tn_options> options_;
};

class Component {
 public:
  Component() = default;
  Component(const SessionPtr& session,
            std::string_view role,
            std::string_view id,
            const Options& options) {
    tn_component_ref* raw = nullptr;
    check(session->component->create(session->ctx(), str(role), str(id), options.get(), &raw));
    ref_ = Handle<tn_component_ref>(session, raw, session->component->release);
  }
  // Of this program: see tn_host_component.lend. Owns `self` from then on.
  static Component lend(const SessionPtr& session,
                        std::string_view role,
                        std::string_view id,
                        const void* table,
                        void* self,
                        void(TN_CALL* destroy)(void* self)) {
    tn_component_ref* raw = nullptr;
    check(session->component->lend(session->ctx(), str(role), str(id), table, self, destroy, &raw));
    Component out;
    out.ref_ = Handle<tn_component_ref>(session, raw, session->component->release);
    return out;
  }
  // Another reference to the same component.
  Component share() const {
    session()->component->retain(raw());
    Component out;
    out.ref_ = Handle<tn_component_ref>(session(), raw(), session()->component->release);
    return out;
  }
  tn_component_ref* raw() const { return ref_.get(); }
  const SessionPtr& session() const { return ref_.session(); }
  std::string id() const { return std::string(view(session()->component->id(raw()))); }

  template <class Table>
  const Table* table(std::string_view role, void** out_self) const {
    const void* found = session()->component->get_interface(raw(), str(role), out_self);
    if (!found) throw Error(TN_UNIMPLEMENTED, cat(id(), ": expected a table for ", role));
    return static_cast<const Table*>(found);
  }

 private:
  Handle<tn_component_ref> ref_;
};

inline void Options::set(std::string_view key, const Component& component) {
  set(key, {TN_ANY_COMPONENT, 0, 1, {.p = component.raw()}});
}

// Known components of a role ("": all), loaded or not.
inline Json list_components(const Session& session, std::string_view role) {
  TextSink text;
  check(session.component->list(session.ctx(), str(role), text.get()));
  return Json::parse(text.text());
}

// The component of this role that is for files of this name.
inline std::string component_for_file(const Session& session,
                                      std::string_view role,
                                      std::string_view path) {
  TextSink id;
  check(session.component->for_file(session.ctx(), str(role), str(path), id.get()));
  return id.text();
}

// Why a plugin that brings this component cannot be used; empty when none brings it.
inline std::string why_unusable(const Session& session,
                                std::string_view role,
                                std::string_view id) {
  TextSink text;
  check(tenon_plugin_list(session.raw(), text.get()));
  for (const Json& plugin : Json::parse(text.text())) {
    for (const Json& component : plugin["components"]) {
      if (component["role"] == role && component["id"] == id && !plugin["usable"].get<bool>())
        return cat("plugin ", plugin["id"].get<std::string>(),
                   " brings it, but cannot be used: ", plugin["why"].get<std::string>());
    }
  }
  return "";
}

// "accuracy" is short for "metrics.accuracy": the id itself, the one with the prefix, or the only
// one of all plugins that ends in the name.
inline std::string full_id(const Session& session,
                           std::string_view role,
                           std::string_view prefix,
                           const std::string& name) {
  std::vector<std::string> known, ends;  // ends: whose last word it is
  for (const Json& one : list_components(session, role)) {
    std::string id = one["id"];
    if (id == name || id == cat(prefix, ".", name)) return id;
    if (id.substr(id.rfind('.') + 1) == name) ends.push_back(id);
    known.push_back(id.starts_with(cat(prefix, ".")) ? id.substr(prefix.size() + 1) : id);
  }
  if (ends.size() == 1) return ends[0];
  if (!ends.empty()) known = ends;
  for (const std::string& id : {name, cat(prefix, ".", name)})
    if (std::string why = why_unusable(session, role, id); !why.empty())
      throw Error(TN_FAILED_PRECONDITION, cat(prefix, " ", id, ": ", why));
  throw Error(TN_NOT_FOUND,
              cat(prefix, ": ", expected_one_of(known, name, "(no plugin was found)")));
}

}  // namespace tenon::cxx
