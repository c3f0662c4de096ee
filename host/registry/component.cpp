// SPDX-License-Identifier: Apache-2.0
#include "registry/component.hpp"

#include "registry/crash_report.hpp"
#include "services/boundary.hpp"
#include "services/session.hpp"
#include "services/status_object.hpp"
#include "values/option_schema.hpp"

using tenon::host::AdoptedTable;
using tenon::host::Held;
using tenon::host::Registry;
using tenon::host::Result;
using tenon::host::Status;

tn_component_ref::tn_component_ref(tn_ctx* owner, const Registry::Found& found, void* self)
    : owner_(owner), plugin_(&found.plugin->table), component_(found.component), self_(self) {
  owner_->add(Held::kComponent, 1);
}

tn_component_ref::tn_component_ref(tn_ctx* owner, Lent lent, void* self)
    : owner_(owner), lent_(std::move(lent)), self_(self) {
  owner_->add(Held::kComponent, 1);
}

tn_component_ref::~tn_component_ref() {
  if (named_) tenon::host::forget_self(self_);
  if (plugin_) {
    plugin_->destroy(self_);
  } else if (lent_.destroy) {
    lent_.destroy(self_);
  }
  owner_->add(Held::kComponent, -1);
}

void tn_component_ref::release() noexcept {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

const void* tn_component_ref::given_table(std::string_view wanted) const {
  if (plugin_) return plugin_->get_interface(self_, tenon::host::str(wanted));
  return wanted == lent_.role ? lent_.table : nullptr;
}

Result<const void*> tn_component_ref::table(std::string_view wanted) {
  std::lock_guard hold(lock_);
  auto known = tables_.find(wanted);
  if (known != tables_.end()) return known->second.get();
  const void* given = given_table(wanted);
  if (!given && wanted != role()) return nullptr;
  if (!given) return Status{TN_FAILED_PRECONDITION, "it has no table for its own role", id()};
  Result<AdoptedTable> adopted = AdoptedTable::make(wanted, given);
  if (!adopted.ok())
    return Status{TN_FAILED_PRECONDITION, "its table is broken", id(), adopted.status()};
  if (!adopted->holes().empty() && !named_) {
    tenon::host::name_self(self_, id());
    named_ = true;
  }
  const void* kept = tables_.emplace(wanted, std::move(*adopted)).first->second.get();
  tenon::host::know_table(wanted, id(), kept);
  return kept;
}

namespace tenon::host {
namespace {

tn_status* create(
    tn_ctx* ctx, tn_str role, tn_str id, const tn_options* options, tn_component_ref** out) {
  return guarded_out(out, [&] { return create_component(ctx, view(role), view(id), options); });
}

const void* get_interface(tn_component_ref* component, tn_str id, void** out_self) {
  const void* found = nullptr;
  *out_self = nullptr;
  quietly([&] {
    Result<const void*> table = component->table(view(id));
    if (table.ok()) found = *table;
  });
  if (found) *out_self = component->self();
  return found;
}

tn_str id_of(const tn_component_ref* component) {
  return str(component->id());
}
tn_str role_of(const tn_component_ref* component) {
  return str(component->role());
}
void retain(tn_component_ref* component) {
  component->retain();
}
void release(tn_component_ref* component) {
  if (component) component->release();
}

tn_status* list(tn_ctx* ctx, tn_str role, const tn_sink* sink) {
  return guarded([&] {
    std::string json = ctx->session->registry->list_components(view(role));
    return Status(sink->write(sink->ctx, json.data(), json.size()));
  });
}

tn_status* for_file(tn_ctx* ctx, tn_str role, tn_str path, const tn_sink* sink) {
  return guarded([&]() -> Status {
    TN_TRY(id, ctx->session->registry->for_file(view(role), view(path)));
    return Status(sink->write(sink->ctx, id.data(), id.size()));
  });
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
    tn_component_ref::Lent lent{std::string(view(role)), std::string(view(id)), table, nullptr};
    auto made = Ref<tn_component_ref>::take(new tn_component_ref(ctx, std::move(lent), self));
    TN_TRY(adopted, made->table(view(role)));  // a broken table is refused now, not when it is used
    static_cast<void>(adopted);
    made->destroy_with(destroy);  // after a failure self stays the caller's
    return made;
  });
}

}  // namespace

Status named(tn_status* answer, const tn_component_ref& component, std::string_view function) {
  if (!answer) return {};
  auto add = [answer](std::string_view key, std::string_view text) {
    status_service()->detail(answer, str(key), {TN_ANY_TEXT, 0, text.size(), {.p = text.data()}});
  };
  if (answer->domain != component.id()) add("component", component.id());
  add("role", component.role());
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
  return Ref<tn_component_ref>::take(new tn_component_ref(owner, found, self));
}

const tn_host_component* component_service() {
  static const tn_host_component table{sizeof table, 1,       create, get_interface, id_of, role_of,
                                       retain,       release, list,   for_file,      lend};
  return &table;
}

}  // namespace tenon::host
