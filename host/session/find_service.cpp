// SPDX-License-Identifier: Apache-2.0
// The list of services that plugins and programs get.
#include <string_view>

#include "graph/edit.hpp"
#include "graph/graph.hpp"
#include "graph/op_table.hpp"
#include "guards.hpp"
#include "memory/arena.hpp"
#include "registry/component.hpp"
#include "services/log.hpp"
#include "services/rooms.hpp"
#include "services/services.hpp"
#include "services/session.hpp"
#include "services/status_object.hpp"
#include "services/trace.hpp"
#include "threads/parallel.hpp"
#include "threads/service.hpp"
#include "values/options.hpp"
#include "values/tensor.hpp"

namespace tenon::host {
namespace {

// What plugins and programs get is the guarded table: the real one with checked arguments.
struct Row {
  Row(std::string_view service, const void* real)
      : id(service), table(real ? guarded_service(service, real) : nullptr) {}
  std::string_view id;
  const void* table;
};

}  // namespace

// The one list of services: a new one is a row here.
const void* find_service(std::string_view id) {
  // clang-format off
  static const Row rows[] = {
      {"tenon.host.arena/1", arena_service()},
      {"tenon.host.blob/1", rooms().files ? rooms().files() : nullptr},
      {"tenon.host.cancel/1", cancel_service()},
      {"tenon.host.component/1", component_service()},
      {"tenon.host.eval/1", rooms().runtime ? rooms().runtime() : nullptr},
      {"tenon.host.graph/1", graph_service()},
      {"tenon.host.graph_edit/1", edit_service()},
      {"tenon.host.op/1", op_service()},
      {"tenon.host.op_columns/1", op_columns_service()},
      {"tenon.host.log/1", log_service()},
      {"tenon.host.memory/1", memory_service()},
      {"tenon.host.options/1", options_service()},
      {"tenon.host.parallel/1", parallel_service()},
      {"tenon.host.progress/1", progress_service()},
      {"tenon.host.random/1", random_service()},
      {"tenon.host.status/1", status_service()},
      {"tenon.host.team/1", team_service()},
      {"tenon.host.tensor/1", tensor_service()},
      {"tenon.host.trace/1", trace_service()},
  };
  // clang-format on
  for (const Row& row : rows)
    if (row.id == id) return row.table;
  return nullptr;
}

}  // namespace tenon::host
