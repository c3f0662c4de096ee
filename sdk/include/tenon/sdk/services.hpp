// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host's services as this plugin sees them: filled in once, when the host calls init. The
// tables are the same for all sessions of one libtenon; what differs by session is the context
// (tn_ctx), which a component gets when it is created and an edit or a call carries along.

#include <string>
#include <string_view>

#include "tenon/abi.h"

namespace tenon {

inline std::string_view view(tn_str text) {
  return text.data ? std::string_view(text.data, text.len) : std::string_view();
}
inline tn_str str(std::string_view text) {
  return {text.data(), text.size()};
}

struct Services {
  const tn_host_status* status = nullptr;
  const tn_host_memory* memory = nullptr;
  const tn_host_log* log = nullptr;
  const tn_host_options* options = nullptr;
  const tn_host_tensor* tensor = nullptr;
  const tn_host_graph* graph = nullptr;
  const tn_host_graph_edit* edit = nullptr;
  const tn_host_op* op = nullptr;
  const tn_host_op_columns* columns = nullptr;
  const tn_host_component* component = nullptr;
  const tn_host_eval* eval = nullptr;
  const tn_host_parallel* parallel = nullptr;
  const tn_host_team* team = nullptr;
  const tn_host_progress* progress = nullptr;
  const tn_host_cancel* cancel = nullptr;
  const tn_host_random* random = nullptr;
  const tn_host_trace* trace = nullptr;
  const tn_host_blob* blob = nullptr;
  const tn_host_arena* arena = nullptr;

  // Empty when all are there, else the id of a service that this host lacks.
  std::string_view fill(const tn_host& host) {
    std::string_view missing;
    auto get = [&](auto& table, std::string_view id) {
      table =
          static_cast<std::remove_reference_t<decltype(table)>>(host.get_interface(&host, str(id)));
      if (!table) missing = id;
    };
    get(status, "tenon.host.status/1");
    get(memory, "tenon.host.memory/1");
    get(log, "tenon.host.log/1");
    get(options, "tenon.host.options/1");
    get(tensor, "tenon.host.tensor/1");
    get(graph, "tenon.host.graph/1");
    get(edit, "tenon.host.graph_edit/1");
    get(op, "tenon.host.op/1");
    get(columns, "tenon.host.op_columns/1");
    get(component, "tenon.host.component/1");
    get(eval, "tenon.host.eval/1");
    get(parallel, "tenon.host.parallel/1");
    get(team, "tenon.host.team/1");
    get(progress, "tenon.host.progress/1");
    get(cancel, "tenon.host.cancel/1");
    get(random, "tenon.host.random/1");
    get(trace, "tenon.host.trace/1");
    get(blob, "tenon.host.blob/1");
    get(arena, "tenon.host.arena/1");
    return missing;
  }
};

// One per plugin: hidden visibility keeps it private to the shared library.
inline Services services;

}  // namespace tenon
