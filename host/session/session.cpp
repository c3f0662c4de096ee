// SPDX-License-Identifier: Apache-2.0
#include "services/session.hpp"

#include "graph/op_table.hpp"
#include "registry/registry.hpp"
#include "services/log.hpp"
#include "services/trace.hpp"
#include "threads/team.hpp"

namespace tenon::host {

Session::Session(RegistryConfig config)
    : ops(std::make_unique<OpTable>()),
      log(std::make_unique<LogHub>()),
      trace(std::make_unique<TraceHub>()),
      threads(static_cast<size_t>(team::max_threads())),
      own(new tn_ctx(this, "embedder")) {
  registry = std::make_unique<Registry>(this, std::move(config));
}

// Plugins leave first: on their way out they may still log and release what they hold.
Session::~Session() {
  registry.reset();
  ops.reset();
  delete own;
}

}  // namespace tenon::host

namespace {

const void* get_interface(const tn_host*, tn_str id) {
  return tenon::host::find_service(tenon::host::view(id));
}

}  // namespace

tn_ctx::tn_ctx(tenon::host::Session* of, std::string who) : session(of), id(std::move(who)) {
  host = {sizeof host, 0, TN_ABI_MAJOR, TN_ABI_MINOR, this, get_interface};
}
