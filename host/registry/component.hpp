// SPDX-License-Identifier: Apache-2.0
#pragma once
// A live component of a plugin, and the service "tenon.host.component/1" over it.

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "tenon/host/component.h"

#include "registry/adopt.hpp"
#include "registry/loader.hpp"
#include "registry/registry.hpp"
#include "services/counted.hpp"
#include "services/ref.hpp"

struct tn_component_ref : tenon::host::Counted<tn_component_ref, tenon::host::Held::kComponent> {
  // What a plugin made, and what a program lends by its table.
  tn_component_ref(tn_ctx* owner, const tenon::host::Registry::Found& found, void* self);
  struct Lent {
    std::string role, id;
    const void* table;
    void(TN_CALL* destroy)(void* self);
  };
  tn_component_ref(tn_ctx* owner, Lent lent, void* self);
  void destroy_with(void(TN_CALL* destroy)(void* self)) { lent_.destroy = destroy; }
  ~tn_component_ref();

  std::string_view id() const { return component_ ? tenon::host::view(component_->id) : lent_.id; }
  std::string_view role() const {
    return component_ ? tenon::host::view(component_->role) : lent_.role;
  }
  uint32_t flags() const { return component_ ? component_->flags : 0; }  // TN_COMP_*

  // The table in full size, or NULL when the component has no such interface; and what its
  // functions are given.
  struct Interface {
    const void* table;
    void* self;
  };
  tenon::host::Result<Interface> interface(std::string_view id);

 private:
  const void* given_table(std::string_view id) const;

  const tn_plugin* plugin_ = nullptr;  // NULL with component_: it is lent
  const tn_component* component_ = nullptr;
  Lent lent_{};
  void* self_;
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
Status named(tn_status* answer, const tn_component_ref* component, std::string_view function);

// A component with the table of its role: what the host itself calls.
template <class Table>
class Made {
 public:
  static Result<Made> create(tn_ctx* owner,
                             std::string_view role,
                             std::string_view id,
                             const tn_options* options) {
    TN_TRY(ref, create_component(owner, role, id, options));
    TN_TRY(interface, ref->interface(role));
    return Made(std::move(ref), interface);
  }
  const Table* operator->() const { return static_cast<const Table*>(interface_.table); }
  void* self() const { return interface_.self; }
  std::string_view id() const { return ref_->id(); }
  Status called(std::string_view function, tn_status* answer) const {
    return named(answer, ref_.get(), function);
  }

 private:
  Made(Ref<tn_component_ref> ref, tn_component_ref::Interface interface)
      : ref_(std::move(ref)), interface_(interface) {}
  Ref<tn_component_ref> ref_;
  tn_component_ref::Interface interface_;
};

const tn_host_component* component_service();

}  // namespace tenon::host
