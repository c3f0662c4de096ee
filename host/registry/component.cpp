// SPDX-License-Identifier: Apache-2.0
#include "registry/component.hpp"

#include "schemas/option_schema.hpp"
#include "services/boundary.hpp"
#include "services/rooms.hpp"
#include "services/session.hpp"
#include "services/status_object.hpp"

using tenon::host::AdoptedTable;
using tenon::host::Registry;
using tenon::host::Result;
using tenon::host::Status;

tn_component_ref::tn_component_ref(tn_ctx* made_by, const Registry::Found& found, void* self)
    : Counted(made_by), plugin_(&found.plugin->table), component_(found.component), self_(self) {}

tn_component_ref::tn_component_ref(tn_ctx* made_by, Lent lent, void* self)
    : Counted(made_by), lent_(std::move(lent)), self_(self) {}

tn_component_ref::~tn_component_ref() {
  if (named_) tenon::host::forget_self(self_);
  if (plugin_) {
    plugin_->destroy(self_);
  } else if (lent_.destroy) {
    lent_.destroy(self_);
  }
}

const void* tn_component_ref::given_table(std::string_view wanted) const {
  if (plugin_) return plugin_->get_interface(self_, tenon::host::str(wanted));
  return wanted == lent_.role ? lent_.table : nullptr;
}

Result<tn_component_ref::Interface> tn_component_ref::interface(std::string_view wanted) {
  std::lock_guard hold(lock_);
  auto known = tables_.find(wanted);
  if (known != tables_.end()) return Interface{known->second.get(), known->second.self(self_)};
  const void* given = given_table(wanted);
  if (!given && wanted != role()) return Interface{};
  if (!given) return Status{TN_FAILED_PRECONDITION, "it has no table for its own role", id()};
  Result<AdoptedTable> adopted = AdoptedTable::make(wanted, given);
  if (!adopted.ok())
    return Status{TN_FAILED_PRECONDITION, "its table is broken", id(), adopted.status()};
  if (!adopted->holes().empty() && !named_) {
    tenon::host::name_self(self_, id());
    named_ = true;
  }
  tenon::host::rooms().crashes.know_table(wanted, id(), adopted->get());
  if (component_)
    adopted->watch_calls(
        self_, {std::string(tenon::host::view(plugin_->id)), tenon::host::cat("component ", id())},
        !(component_->flags & TN_COMP_REENTRANT));
  const AdoptedTable& kept = tables_.emplace(wanted, std::move(*adopted)).first->second;
  return Interface{kept.get(), kept.self(self_)};
}

namespace tenon::host {
namespace {

tn_status* create(
    tn_ctx* ctx, tn_str role, tn_str id, const tn_options* options, tn_component_ref** out) {
  return guarded_out(out, [&] { return create_component(ctx, view(role), view(id), options); });
}

const void* get_interface(tn_component_ref* component, tn_str id, void** out_self) {
  tn_component_ref::Interface found{};
  quietly([&] {
    Result<tn_component_ref::Interface> interface = component->interface(view(id));
    if (interface.ok()) found = *interface;
  });
  *out_self = found.self;
  return found.table;
}

tn_str id_of(const tn_component_ref* component) {
  return str(component->id());
}
tn_str role_of(const tn_component_ref* component) {
  return str(component->role());
}
uint32_t flags_of(const tn_component_ref* component) {
  return component->flags();
}

tn_status* list(tn_ctx* ctx, tn_str role, const tn_sink* sink) {
  return guarded([&]() -> Status {
    if (!rooms().list_components) return {TN_UNIMPLEMENTED, "built without lists of components"};
    std::string json = rooms().list_components(*ctx->session->registry, view(role));
    return write(sink, json);
  });
}

tn_status* for_file(tn_ctx* ctx, tn_str role, tn_str path, const tn_sink* sink) {
  return guarded([&]() -> Status {
    TN_TRY(id, ctx->session->registry->for_file(view(role), view(path)));
    return write(sink, id);
  });
}

// A broken table is refused now, not in use. Its lender is compiled with it: nothing may be
// missing.
Status check_lent(std::string_view role, const void* table) {
  if (std::string why = why_no_role(role); !why.empty()) return {TN_FAILED_PRECONDITION, why};
  TN_TRY(adopted, AdoptedTable::make(role, table));
  if (adopted.holes().empty()) return {};
  return {TN_FAILED_PRECONDITION,
          cat("table ", role, ": function ", adopted.holes()[0],
              " is NULL or beyond its struct_size: expected all that the header does not mark "
              "TN_NULLABLE")};
}

tn_status* lend(tn_ctx* ctx,
                tn_str role,
                tn_str id,
                const void* table,
                void* self,
                void(TN_CALL* destroy)(void*),
                tn_component_ref** out) {
  return guarded_out(out, [&]() -> Result<Ref<tn_component_ref>> {
    if (!table || role.len == 0 || id.len == 0)
      return Status{TN_INVALID_ARGUMENT, "expected a role, an id and the role's table"};
    TN_CHECK(check_lent(view(role), table));
    tn_component_ref::Lent lent{std::string(view(role)), std::string(view(id)), table, nullptr};
    auto made = Ref<tn_component_ref>::take(new tn_component_ref(ctx, std::move(lent), self));
    TN_CHECK(made->interface(view(role)).status());
    made->destroy_with(destroy);  // after a failure self stays the caller's
    return made;
  });
}

}  // namespace

Status named(tn_status* answer, const tn_component_ref* component, std::string_view function) {
  if (!answer) return {};
  auto add = [answer](std::string_view key, std::string_view text) {
    status_service()->detail(answer, str(key), {TN_ANY_TEXT, 0, text.size(), {.p = text.data()}});
  };
  if (answer->domain != component->id()) add("component", component->id());
  add("role", component->role());
  add("function", function);
  return Status(answer);
}

Result<Ref<tn_component_ref>> create_component(tn_ctx* owner,
                                               std::string_view role,
                                               std::string_view id,
                                               const tn_options* options) {
  TN_TRY(found, owner->session->registry->find(role, id));
  TN_TRY(checked, validate_options(owner, view(found.component->options_schema), options, id));
  void* self = nullptr;
  const tn_plugin& plugin = found.plugin->table;
  Status failed(plugin.create(found.plugin->state, found.component->role, found.component->id,
                              checked.get(), &self));
  if (!failed.ok()) {
    int32_t code = failed.code();
    return Status{code, cat("cannot be created (role ", role, ")"), id, std::move(failed)};
  }
  auto made = Ref<tn_component_ref>::take(new tn_component_ref(owner, found, self));
  TN_CHECK(made->interface(role).status());  // a broken table is refused now, not in use
  return made;
}

const tn_host_component* component_service() {
  static const tn_host_component table{sizeof table, 1,        create,        get_interface,
                                       id_of,        role_of,  retain_object, release_object,
                                       list,         for_file, lend,          flags_of};
  return &table;
}

}  // namespace tenon::host
