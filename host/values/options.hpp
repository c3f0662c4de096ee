// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named values for a component, in the order in which they were first set. Filled by one thread,
// then only read.

#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/host/options.h"

#include "services/handle.hpp"
#include "services/ref.hpp"
#include "values/any.hpp"

struct tn_options : tenon::host::Handle<tn_options> {
  explicit tn_options(tn_ctx* owner);
  tn_options(const tn_options&) = delete;
  tn_options& operator=(const tn_options&) = delete;

  void retain() { refs.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;
  void set(std::string_view key, tenon::host::Any value);
  const tenon::host::Any* find(std::string_view key) const;  // NULL when absent

  tn_ctx* owner;
  std::atomic<uint64_t> refs{1};
  std::vector<std::pair<std::string, tenon::host::Any>> entries;

 private:
  ~tn_options();
};

namespace tenon::host {

Ref<tn_options> new_options(tn_ctx* owner);
// Adds the members of a JSON object; empty text adds none. null takes the default of the schema.
Status parse_options(tn_options* options, std::string_view json);
const tn_host_options* options_service();

}  // namespace tenon::host
