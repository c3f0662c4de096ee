// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables of plugins in full size. A plugin that was built with older headers brings a shorter
// table; the host copies it into one of today's size, and functions that are missing become stubs
// that answer UNIMPLEMENTED, so that no call site looks at sizes. Functions that the role's header
// lets be NULL stay NULL.

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/plugin.h"
#include "tenon/role/op.h"

#include "services/arguments.hpp"
#include "services/status.hpp"

namespace tenon::host {

// Checks a table's struct_size: at least `least`, no larger than a table can be, a multiple of 8.
Status check_table_size(std::string_view what, uint32_t struct_size, size_t least);

// A full-size copy of a growable struct whose first `least` bytes are required.
template <class T>
Result<T> adopt_struct(std::string_view what, const T* from, size_t least);

// Whose functions a table has: what messages about its faults say.
struct Provider {
  std::string plugin, component;
};

// The calls of a component's functions. Where [serial] ones take turns, the lock is recursive: a
// component that calls itself does so in its turn.
struct Calls {
  Provider by;
  bool take_turns;
  std::recursive_mutex lock;
  void* self;
  std::unique_ptr<uint64_t[]> plain;  // the table
};

// The table of a role, in full size. Ids that the host does not know are handed through as they
// are: their users agree on the size.
class AdoptedTable {
 public:
  static Result<AdoptedTable> make(std::string_view role, const void* table);
  const void* get() const { return bytes_ ? bytes_.get() : foreign_; }
  const std::vector<std::string_view>& holes() const { return holes_; }

  // From now on faults name their provider, and calls of functions that the role's header tags
  // [serial] take turns if that is asked for; what goes into the table's functions is self(self).
  void watch_calls(void* self, Provider by, bool take_turns);
  void* self(void* plain) const { return calls_ ? calls_.get() : plain; }

 private:
  std::string_view role_;  // empty: a foreign one
  std::unique_ptr<uint64_t[]> bytes_;
  std::unique_ptr<Calls> calls_;
  const void* foreign_ = nullptr;
  std::vector<std::string_view> holes_;  // names of the functions that are stubs
};

// Of a role in Tenon's own namespace that this host does not have: that it has none, and which it
// has in its place. Else empty.
std::string why_no_role(std::string_view role);

// The functions of a full-size table by name, those that are NULL too.
std::vector<std::pair<std::string_view, const void*>> functions_of(std::string_view role,
                                                                   const void* table);

// While a component with holes lives, its stubs name it by its self.
void name_self(const void* self, std::string_view component);
void forget_self(const void* self);

template <class T>
Result<T> adopt_struct(std::string_view what, const T* from, size_t least) {
  if (!from) return Status{TN_FAILED_PRECONDITION, cat(what, " is NULL")};
  TN_CHECK(check_table_size(what, from->struct_size, least));
  T full{};
  copy_sized(from, &full);
  full.struct_size = sizeof full;
  return full;
}

}  // namespace tenon::host
