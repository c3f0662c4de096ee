// SPDX-License-Identifier: Apache-2.0
#include "registry/adopt.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <span>

#include "tenon/abi.h"

#include "services/status_object.hpp"

namespace tenon::host {
namespace {

// The only state of the stubs: a C function has no closure to keep its component in.
struct NamedSelves {
  std::mutex lock;
  std::multimap<const void*, std::string> names;
};

NamedSelves& named_selves() {
  static NamedSelves selves;
  return selves;
}

tn_status* missing(const void* self, std::string_view role, std::string_view function) {
  NamedSelves& selves = named_selves();
  std::lock_guard hold(selves.lock);
  auto found = selves.names.find(self);
  std::string who = found == selves.names.end() ? "component" : found->second;
  return Status(TN_UNIMPLEMENTED,
                cat("function ", function, " of ", role,
                    " is not provided: the plugin was built without it"),
                who)
      .release();
}

// Text as a template argument.
template <size_t N>
struct Name {
  constexpr Name(const char (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT: implicit
  char text[N];
};

// What may stand in a table instead of a plugin's function.
template <class F>
struct Instead;
template <class R, class... Args>
struct Instead<R(TN_CALL*)(void*, Args...)> {
  static constexpr bool kCanReport = std::is_same_v<R, tn_status*>;
  template <Name role, Name function>
  static R TN_CALL hole(void* self, Args...) {
    if constexpr (kCanReport) {
      return missing(self, role.text, function.text);
    } else if constexpr (!std::is_void_v<R>) {
      return R{};
    }
  }
  // For tables whose calls are watched: self is their Calls.
  template <Name name, size_t offset, bool serial>
  static R TN_CALL watched(void* self, Args... args) {
    auto& calls = *static_cast<Calls*>(self);
    std::unique_lock hold(calls.lock, std::defer_lock);
    if (serial && calls.take_turns) hold.lock();
    R(TN_CALL * function)(void*, Args...);
    std::memcpy(&function, reinterpret_cast<const char*>(calls.plain.get()) + offset,
                sizeof function);
    if constexpr (kCanReport)
      return blame(function(calls.self, args...), calls.by.plugin, name.text, calls.by.component);
    else
      return function(calls.self, args...);
  }
};

using Function = void (*)();
struct Slot {
  size_t offset;
  std::string_view name;
  bool needed;      // others stay NULL when they are missing
  bool can_report;  // that it is missing, when it is called
  Function hole, watched;
};
struct Role {
  std::string_view id;
  size_t full;
  std::span<const Slot> slots;
};

#define TN_SLOT(table, role, function, needed, serial)                                            \
  Slot {                                                                                          \
    offsetof(table, function), #function, needed, Instead<decltype(table::function)>::kCanReport, \
        reinterpret_cast<Function>(&Instead<decltype(table::function)>::hole<role, #function>),   \
        reinterpret_cast<Function>(                                                               \
            &Instead<decltype(table::function)>::watched<#function, offsetof(table, function),    \
                                                         serial>)                                 \
  }

// kRoles, from the role headers: what is not TN_NULLABLE there is needed.
#include "roles.inc"

const Role* role_of(std::string_view id) {
  const Role* found = std::ranges::find(kRoles, id, &Role::id);
  return found == std::end(kRoles) ? nullptr : found;
}
Function function_at(const void* table, const Slot& slot) {
  Function function = nullptr;
  std::memcpy(&function, static_cast<const char*>(table) + slot.offset, sizeof function);
  return function;
}

}  // namespace

Status check_table_size(std::string_view what, uint32_t struct_size, size_t least) {
  if (struct_size >= least && is_struct_size(struct_size)) return {};
  return {TN_FAILED_PRECONDITION,
          cat(what, ": expected struct_size from ", least, " to ", kLargestStruct,
              ", a multiple of 8, got ", struct_size, "; set it with sizeof")};
}

std::string why_no_role(std::string_view role) {
  if (!role.starts_with("tenon.") || role_of(role)) return {};
  std::string_view name = role.substr(0, role.find('/') + 1);
  std::vector<std::string_view> ids;
  for (const Role& known : kRoles) {
    if (known.id.starts_with(name))
      return cat("this host has no role ", role, "; ", known.id, " is the one it has");
    ids.push_back(known.id);
  }
  return cat("this host has no role ", role, did_you_mean(role, ids));
}

Result<AdoptedTable> AdoptedTable::make(std::string_view role, const void* table) {
  AdoptedTable adopted;
  adopted.role_ = role_of(role) ? role_of(role)->id : std::string_view();
  if (adopted.role_.empty()) {
    adopted.foreign_ = table;
    return adopted;
  }
  const Role& known = *role_of(role);
  uint32_t struct_size = *static_cast<const uint32_t*>(table);
  TN_CHECK(check_table_size(cat("table ", role), struct_size, 2 * sizeof(uint32_t)));
  adopted.bytes_ = std::make_unique<uint64_t[]>(known.full / sizeof(uint64_t));
  char* bytes = reinterpret_cast<char*>(adopted.bytes_.get());
  std::memcpy(bytes, table, std::min<size_t>(struct_size, known.full));
  *reinterpret_cast<uint32_t*>(bytes) = static_cast<uint32_t>(known.full);
  for (const Slot& slot : known.slots) {
    if (!slot.needed || function_at(bytes, slot)) continue;
    if (!slot.can_report)
      return Status{TN_FAILED_PRECONDITION,
                    cat("table ", role, ": function ", slot.name, " is NULL, and every component ",
                        "of this role needs it")};
    std::memcpy(bytes + slot.offset, &slot.hole, sizeof slot.hole);
    adopted.holes_.push_back(slot.name);
  }
  return adopted;
}

void AdoptedTable::watch_calls(void* self, Provider by, bool take_turns) {
  const Role* role = role_of(role_);
  if (!role) return;
  calls_ = std::make_unique<Calls>(std::move(by), take_turns);
  calls_->self = self;
  calls_->plain = std::move(bytes_);
  bytes_ = std::make_unique<uint64_t[]>(role->full / sizeof(uint64_t));
  std::memcpy(bytes_.get(), calls_->plain.get(), role->full);
  for (const Slot& slot : role->slots)
    if (function_at(calls_->plain.get(), slot))
      std::memcpy(reinterpret_cast<char*>(bytes_.get()) + slot.offset, &slot.watched,
                  sizeof slot.watched);
}

std::vector<std::pair<std::string_view, const void*>> functions_of(std::string_view role,
                                                                   const void* table) {
  std::vector<std::pair<std::string_view, const void*>> out;
  if (const Role* known = role_of(role))
    for (const Slot& slot : known->slots)
      out.emplace_back(slot.name, reinterpret_cast<const void*>(function_at(table, slot)));
  return out;
}

void name_self(const void* self, std::string_view component) {
  std::lock_guard hold(named_selves().lock);
  named_selves().names.emplace(self, component);
}

void forget_self(const void* self) {
  std::lock_guard hold(named_selves().lock);
  auto found = named_selves().names.find(self);
  if (found != named_selves().names.end()) named_selves().names.erase(found);
}

}  // namespace tenon::host
