// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named values for a component, in the order in which they were first set. Filled by one thread,
// then only read.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/host/options.h"

#include "services/counted.hpp"
#include "services/ref.hpp"
#include "values/any.hpp"

struct tn_options : tenon::host::Counted<tn_options, tenon::host::Held::kOptions> {
  using Counted::Counted;
  void set(std::string_view key, tenon::host::Any value);
  const tenon::host::Any* find(std::string_view key) const;  // NULL when absent

  std::vector<std::pair<std::string, tenon::host::Any>> entries;
};

namespace tenon::host {

Ref<tn_options> new_options(tn_ctx* owner);
// Adds the members of a JSON object; empty text adds none. null takes the default of the schema.
Status parse_options(tn_options* options, std::string_view json);
const tn_host_options* options_service();

}  // namespace tenon::host
