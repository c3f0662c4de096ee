// SPDX-License-Identifier: Apache-2.0
#pragma once
// Other components, of any plugin. Component owns a reference; table<T>() is its role's table.
//
//   TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
//   uint64_t n = data.table<tn_dataset>()->size(data.self());

#include <string>
#include <string_view>
#include <utility>

#include "tenon/sdk/any.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

class Component {
 public:
  Component() = default;
  // options: a JSON object, or empty.
  static Result<Component> create(tn_ctx* ctx,
                                  std::string_view role,
                                  std::string_view id,
                                  std::string_view options = {}) {
    tn_options* given = nullptr;
    TN_CHECK(services.options->create(ctx, &given));
    Status parsed(services.options->parse(given, str(options)));
    tn_component_ref* made = nullptr;
    if (parsed.ok())
      parsed = Status(services.component->create(ctx, str(role), str(id), given, &made));
    services.options->release(given);
    if (!parsed.ok()) return parsed;
    return take(made, role);
  }
  static Result<Component> share(tn_component_ref* raw, std::string_view role) {
    services.component->retain(raw);
    return take(raw, role);
  }
  Component(const Component&) = delete;
  Component(Component&& other) noexcept
      : raw_(std::exchange(other.raw_, nullptr)), table_(other.table_), self_(other.self_) {}
  Component& operator=(Component&& other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(table_, other.table_);
    std::swap(self_, other.self_);
    return *this;
  }
  ~Component() {
    if (raw_) services.component->release(raw_);
  }
  explicit operator bool() const { return raw_ != nullptr; }
  template <class Table>
  const Table* table() const {
    return static_cast<const Table*>(table_);
  }
  void* self() const { return self_; }
  tn_component_ref* raw() const { return raw_; }
  std::string id() const { return std::string(view(services.component->id(raw_))); }

 private:
  static Result<Component> take(tn_component_ref* raw, std::string_view role) {
    Component out;
    out.raw_ = raw;
    if (view(services.component->role(raw)) != role)
      return invalid(cat("expected a component of role ", role, ", got ", out.id(), " of role ",
                         view(services.component->role(raw))));
    out.table_ = services.component->get_interface(raw, str(role), &out.self_);
    if (!out.table_)
      return Status(TN_FAILED_PRECONDITION, cat(out.id(), " has no table for role ", role));
    return out;
  }
  tn_component_ref* raw_ = nullptr;
  const void* table_ = nullptr;
  void* self_ = nullptr;
};

// Runs a pass on the graph itself, between edits; report: a JSON object, what it says of it.
inline Status run_pass(tn_ctx* ctx,
                       tn_graph* graph,
                       std::string_view id,
                       std::string_view options,
                       const tn_cancel* cancel,
                       std::string* report = nullptr) {
  TN_TRY(pass, Component::create(ctx, "tenon.pass/1", id, options));
  StringSink text;
  Status ran(pass.table<tn_pass>()->run(pass.self(), graph, cancel, text.get()));
  if (report) *report = text.text;
  return std::move(ran).in(id);
}

// Text that stands for a component: an id of this role, or else a file that one of this role opens
// by its option "path".
inline Result<Component> component_named(tn_ctx* ctx,
                                         std::string_view role,
                                         std::string_view text) {
  Result<Component> by_id = Component::create(ctx, role, text);
  if (by_id.ok()) return by_id;
  StringSink id;
  Status no_reader(services.component->for_file(ctx, str(role), str(text), id.get()));
  if (!no_reader.ok() && by_id.status().code() != TN_NOT_FOUND) return by_id;
  if (!no_reader.ok()) return no_reader;
  tn_options* given = nullptr;
  TN_CHECK(services.options->create(ctx, &given));
  Status made(services.options->set(given, str("path"), any_text(text)));
  tn_component_ref* raw = nullptr;
  if (made.ok())
    made = Status(services.component->create(ctx, str(role), str(id.text), given, &raw));
  services.options->release(given);
  if (!made.ok()) return made;
  Result<Component> shared = Component::share(raw, role);
  services.component->release(raw);
  return shared;
}

// An option of type "component": a live one, an id, or a file. Falsy when the option is absent.
inline Result<Component> component_option(tn_ctx* ctx,
                                          const Options& options,
                                          std::string_view key,
                                          std::string_view role) {
  tn_any given = options.get(key);
  if (given.tag != TN_ANY_COMPONENT && given.tag != TN_ANY_TEXT) return Component();
  Result<Component> found =
      given.tag == TN_ANY_TEXT
          ? component_named(ctx, role, text_of(given))
          : Component::share(static_cast<tn_component_ref*>(const_cast<void*>(given.v.p)), role);
  if (!found.ok()) return std::move(found).status().in(cat("option ", key));
  return found;
}

}  // namespace tenon
