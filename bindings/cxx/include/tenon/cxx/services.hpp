// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tables of the host services that bindings use, and how to answer the host from C++.

#include "tenon/host/blob.h"
#include "tenon/host/cancel.h"
#include "tenon/host/component.h"
#include "tenon/host/eval.h"
#include "tenon/host/graph.h"
#include "tenon/host/graph_edit.h"
#include "tenon/host/log.h"
#include "tenon/host/op.h"
#include "tenon/host/options.h"
#include "tenon/host/progress.h"
#include "tenon/host/random.h"
#include "tenon/host/status.h"
#include "tenon/host/team.h"
#include "tenon/host/tensor.h"

#include "tenon/cxx/error.hpp"

namespace tenon::cxx {

class Services {
 public:
  tn_ctx* ctx() const { return host_->ctx; }

  const tn_host_blob* blob = nullptr;
  const tn_host_cancel* stopping = nullptr;
  const tn_host_component* component = nullptr;
  const tn_host_eval* eval = nullptr;
  const tn_host_graph* graph = nullptr;
  const tn_host_graph_edit* edit = nullptr;
  const tn_host_log* log = nullptr;
  const tn_host_op* op = nullptr;
  const tn_host_options* options = nullptr;
  const tn_host_progress* progress = nullptr;
  const tn_host_random* random = nullptr;
  const tn_host_status* status = nullptr;
  const tn_host_team* team = nullptr;
  const tn_host_tensor* tensor = nullptr;

 protected:
  // Throws where the library is older than this header.
  void find_services(const tn_host* host) {
    host_ = host;
    find("tenon.host.blob/1", &blob);
    find("tenon.host.cancel/1", &stopping);
    find("tenon.host.component/1", &component);
    find("tenon.host.eval/1", &eval);
    find("tenon.host.graph/1", &graph);
    find("tenon.host.graph_edit/1", &edit);
    find("tenon.host.log/1", &log);
    find("tenon.host.op/1", &op);
    find("tenon.host.options/1", &options);
    find("tenon.host.progress/1", &progress);
    find("tenon.host.random/1", &random);
    find("tenon.host.status/1", &status);
    find("tenon.host.team/1", &team);
    find("tenon.host.tensor/1", &tensor);
  }

 private:
  template <class Table>
  void find(const char* id, const Table** out) {
    *out = static_cast<const Table*>(host_->get_interface(host_, str(id)));
    if (!*out) throw Error(TN_UNIMPLEMENTED, cat("expected libtenon with ", id, ", got none"));
  }
  const tn_host* host_ = nullptr;
};

// Runs body; an exception becomes a status.
template <class Body>
tn_status* answered(const tn_host_status* status, tn_ctx* ctx, const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& thrown) {
    return status->make(ctx, thrown.code(), {}, str(thrown.what()), nullptr);
  } catch (const std::bad_alloc&) {
    return status->make(ctx, TN_RESOURCE_EXHAUSTED, {}, str("out of memory"), nullptr);
  } catch (const std::exception& thrown) {
    return status->make(ctx, TN_INTERNAL, {}, str(thrown.what()), nullptr);
  }
}

// Inside a function that C calls.
template <class Body>
tn_status* callback(const Services& services, const Body& body) noexcept {
  return answered(services.status, services.ctx(), body);
}

// The same where the tables are still to be found: body gets a Found, which is made of the host.
template <class Found, class Body>
tn_status* callback_with(const tn_host* host, const Body& body) noexcept {
  const auto* status =
      static_cast<const tn_host_status*>(host->get_interface(host, str("tenon.host.status/1")));
  return answered(status, host->ctx, [&] {
    const Found services(host);
    body(services);
  });
}

}  // namespace tenon::cxx
