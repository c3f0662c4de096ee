// SPDX-License-Identifier: Apache-2.0
#pragma once
// A session is one host: its registry of plugins and operators, its log, threads and trace. A
// context (tn_ctx) is the session as one plugin or the embedding program sees it: every object and
// byte that is held is counted against the context that made it.

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tenon/plugin.h"

#include "services/handle.hpp"
#include "services/status.hpp"

namespace tenon::host {

class OpTable;   // op_table.hpp: rows by domain and type
class Registry;  // registry.hpp: plugins and their components
class LogHub;    // log.hpp: log lines and progress go to the embedding program
class TraceHub;  // trace.hpp: spans, written as Chrome's JSON

enum class Held { kStatus, kTensor, kGraph, kOptions, kBlob, kPlan, kComponent, kBlock, kBytes };
inline constexpr size_t kHeldKinds = 9;

struct RegistryConfig {
  std::vector<std::string> plugin_path;
  bool safe_mode = false;  // only the folder beside libtenon
  bool drafts = false;     // components marked as drafts may be created
};

struct Session {
  explicit Session(RegistryConfig config = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::unique_ptr<OpTable> ops;
  std::unique_ptr<Registry> registry;
  std::unique_ptr<LogHub> log;
  std::unique_ptr<TraceHub> trace;
  size_t threads = 1;     // the parallel service's width
  tn_ctx* own = nullptr;  // the context of the embedding program; lives as long as the session
};

// The table of a host service by id, or NULL; the same tables for all contexts.
// session/find_service.cpp has the one list of them.
const void* find_service(std::string_view id);

}  // namespace tenon::host

struct tn_ctx : tenon::host::Handle<tn_ctx> {
  tn_ctx(tenon::host::Session* session, std::string id);

  tenon::host::Session* session;
  std::string id;  // the plugin's, or "embedder"
  tn_host host{};  // what this context is given
  std::array<std::atomic<int64_t>, tenon::host::kHeldKinds> held{};

  void add(tenon::host::Held kind, int64_t n) {
    held[static_cast<size_t>(kind)].fetch_add(n, std::memory_order_relaxed);
  }
};
