// SPDX-License-Identifier: Apache-2.0
#pragma once
// A live component of a plugin, and the service "tenon.host.component/1" over it.

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "tenon/host/component.h"

#include "registry/adopt.hpp"
#include "registry/loader.hpp"
#include "registry/registry.hpp"
#include "services/ref.hpp"

struct tn_component_ref : tenon::host::Handle<tn_component_ref> {
  // What a plugin made, and what a program lends by its table.
  tn_component_ref(tn_ctx* owner, const tenon::host::Registry::Found& found, void* self);
  struct Lent {
    std::string role, id;
    const void* table;
    void(TN_CALL* destroy)(void* self);
  };
  tn_component_ref(tn_ctx* owner, Lent lent, void* self);
  void destroy_with(void(TN_CALL* destroy)(void* self)) { lent_.destroy = destroy; }
  tn_component_ref(const tn_component_ref&) = delete;
  tn_component_ref& operator=(const tn_component_ref&) = delete;

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;

  std::string_view id() const { return component_ ? tenon::host::view(component_->id) : lent_.id; }
  std::string_view role() const {
    return component_ ? tenon::host::view(component_->role) : lent_.role;
  }
  void* self() const { return self_; }
  // The table in full size, or NULL when the component has no such interface.
  tenon::host::Result<const void*> table(std::string_view id);

 private:
  ~tn_component_ref();
  const void* given_table(std::string_view id) const;

  tn_ctx* owner_;
  const tn_plugin* plugin_ = nullptr;  // NULL with component_: it is lent
  const tn_component* component_ = nullptr;
  Lent lent_{};
  void* self_;
  std::atomic<uint64_t> refs_{1};
  std::mutex lock_;
  std::map<std::string, tenon::host::AdoptedTable, std::less<>> tables_;
  bool named_ = false;  // its self is known to the stubs
};

namespace tenon::host {

// Checks the options against the component's schema, loads its plugin and creates it.
Result<Ref<tn_component_ref>> create_component(tn_ctx* owner,
                                               std::string_view role,
                                               std::string_view id,
                                               const tn_options* options);

// Names component, role and function in a failure that a call of the component returned.
Status named(tn_status* answer, const tn_component_ref& component, std::string_view function);

// A component with the table of its role: what the host itself calls.
template <class Table>
class Made {
 public:
  static Result<Made> create(tn_ctx* owner,
                             std::string_view role,
                             std::string_view id,
                             const tn_options* options) {
    TN_TRY(ref, create_component(owner, role, id, options));
    TN_TRY(table, ref->table(role));
    return Made(std::move(ref), static_cast<const Table*>(table));
  }
  const Table* operator->() const { return table_; }
  void* self() const { return ref_->self(); }
  std::string_view id() const { return ref_->id(); }
  Status called(std::string_view function, tn_status* answer) const {
    return named(answer, *ref_.get(), function);
  }

 private:
  Made(Ref<tn_component_ref> ref, const Table* table) : ref_(std::move(ref)), table_(table) {}
  Ref<tn_component_ref> ref_;
  const Table* table_;
};

const tn_host_component* component_service();

}  // namespace tenon::host
