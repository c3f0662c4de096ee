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

template <class F>
struct Hole;
template <class R, class... Args>
struct Hole<R(TN_CALL*)(void*, Args...)> {
  static constexpr bool kCanTell = std::is_same_v<R, tn_status*>;
  template <Name role, Name function>
  static R TN_CALL call(void* self, Args...) {
    if constexpr (kCanTell) {
      return missing(self, role.text, function.text);
    } else if constexpr (!std::is_void_v<R>) {
      return R{};
    }
  }
};

using Function = void (*)();
struct Slot {
  size_t offset;
  std::string_view name;
  Function stub;
  bool can_tell;  // that it is missing, when it is called
};
struct Role {
  std::string_view id;
  size_t full;
  std::span<const Slot> required;  // others stay NULL when they are missing
};

#define TN_SLOT(table, role, function)                                                       \
  Slot {                                                                                     \
    offsetof(table, function), #function,                                                    \
        reinterpret_cast<Function>(&Hole<decltype(table::function)>::call<role, #function>), \
        Hole<decltype(table::function)>::kCanTell                                            \
  }

// kRoles, from the role headers: what is not TN_NULLABLE there is needed.
#include "roles.inc"

}  // namespace

Status check_table_size(std::string_view what, uint32_t struct_size, size_t least) {
  if (struct_size >= least && struct_size <= kLargestTable && struct_size % 8 == 0) return {};
  return {TN_FAILED_PRECONDITION,
          cat(what, ": expected struct_size from ", least, " to ", kLargestTable,
              ", a multiple of 8, got ", struct_size, "; set it with sizeof")};
}

void copy_table(const void* from, uint32_t struct_size, void* into, size_t full) {
  std::memcpy(into, from, std::min<size_t>(struct_size, full));
}

Result<AdoptedTable> AdoptedTable::make(std::string_view role, const void* table) {
  AdoptedTable adopted;
  const Role* known = std::find_if(std::begin(kRoles), std::end(kRoles),
                                   [&](const Role& r) { return r.id == role; });
  if (known == std::end(kRoles)) {
    adopted.foreign_ = table;
    return adopted;
  }
  uint32_t struct_size = *static_cast<const uint32_t*>(table);
  TN_CHECK(check_table_size(cat("table ", role), struct_size, 2 * sizeof(uint32_t)));
  adopted.bytes_ = std::make_unique<uint64_t[]>(known->full / sizeof(uint64_t));
  char* bytes = reinterpret_cast<char*>(adopted.bytes_.get());
  copy_table(table, struct_size, bytes, known->full);
  *reinterpret_cast<uint32_t*>(bytes) = static_cast<uint32_t>(known->full);
  for (const Slot& slot : known->required) {
    Function present = nullptr;
    std::memcpy(&present, bytes + slot.offset, sizeof present);
    if (present) continue;
    if (!slot.can_tell)
      return Status{TN_FAILED_PRECONDITION,
                    cat("table ", role, ": function ", slot.name, " is NULL, and every component ",
                        "of this role needs it")};
    std::memcpy(bytes + slot.offset, &slot.stub, sizeof slot.stub);
    adopted.holes_.push_back(slot.name);
  }
  return adopted;
}

std::vector<std::pair<std::string_view, const void*>> functions_of(std::string_view role,
                                                                   const void* table) {
  std::vector<std::pair<std::string_view, const void*>> out;
  for (const Role& known : kRoles) {
    if (known.id != role) continue;
    for (const Slot& slot : known.required) {
      const void* function = nullptr;
      std::memcpy(&function, static_cast<const char*>(table) + slot.offset, sizeof function);
      out.emplace_back(slot.name, function);
    }
  }
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
