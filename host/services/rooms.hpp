// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a host has beside its core (values, services, graph, registry). The core calls it through
// here, so that it links without the rest; whoever makes a host of it defines rooms().

#include <string>
#include <string_view>

#include "tenon/host/eval.h"

#include "services/status.hpp"

namespace tenon::host {

struct Rooms {
  const tn_host_eval* (*runtime)() = nullptr;  // NULL: graphs are not run
  // The text form of graphs, and differences of texts; NULL: there is none.
  std::string (*print)(const tn_graph& graph, bool with_data) = nullptr;
  Result<tn_graph*> (*parse)(tn_ctx* ctx, std::string_view text) = nullptr;
  std::string (*diff)(std::string_view before, std::string_view after) = nullptr;
};

const Rooms& rooms();

}  // namespace tenon::host
