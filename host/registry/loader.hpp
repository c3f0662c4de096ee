// SPDX-License-Identifier: Apache-2.0
#pragma once
// Brings one plugin file into the process: opens the library, shakes hands both ways, checks what
// it says against the file's description, adopts its tables and initialises it. A library is never
// unloaded: its code may still be on some stack or in some thread's destructors.

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tenon/plugin.h"

#include "discovery/description.hpp"
#include "services/session.hpp"
#include "services/status.hpp"

namespace tenon::host {

struct Plugin {
  Plugin(Session* session, std::string id) : ctx(session, std::move(id)) {}
  ~Plugin();  // deinit
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  tn_ctx ctx;
  std::filesystem::path file;
  tn_plugin table{};  // full size
  std::vector<tn_component> components;
  void* state = nullptr;
  std::recursive_mutex* turns = nullptr;  // of init and deinit
  bool initialised = false;

  const tn_component* find(std::string_view role, std::string_view id) const;
};

// What this build of the host offers to plugins.
tn_offer host_offer();

// Checks the answer of tenon_plugin_entry; `code` is what it returned.
Status check_accept(const tn_offer& offer, int32_t code, const tn_accept& accept);

// Opens plugin.file, shakes hands and calls init. A plugin that failed must be kept all the same:
// a status that its init made belongs to its context.
Status load_plugin(Plugin& plugin, const PluginText& said);

}  // namespace tenon::host
