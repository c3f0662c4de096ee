// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a host has beside its core (values, services, graph, registry). The core calls it through
// here, so that it links without the rest; whoever makes a host of it defines rooms().

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/host/blob.h"
#include "tenon/host/eval.h"
#include "tenon/role/op.h"

#include "services/status.hpp"

namespace tenon::host {

class Registry;

// What is written down about loads of one plugin's file that ended the process.
struct LoadCrashes {
  std::filesystem::path record;      // empty: there is no folder for it
  std::vector<std::string> signals;  // their names, one for each crash
  // One crash can have a cause outside of the plugin, a second one is no accident.
  bool is_quarantined() const { return signals.size() >= 2; }
};

// Who follows what the host does, so that the report of a crash says where it happened. As it
// stands here: none.
struct CrashWatch {
  void (*enter)(std::string_view category, std::string_view name) = [](auto, auto) {};  // a span
  void (*leave)() = [] {};
  void (*know_plugin)(const std::filesystem::path& file, std::string_view id) = [](auto&, auto) {};
  void (*know_row)(const tn_op& row) = [](auto&) {};
  void (*know_table)(std::string_view role, std::string_view component, const void* table) =
      [](auto, auto, auto) {};
  LoadCrashes (*crashes_of)(const std::filesystem::path& plugin) = [](auto&) {
    return LoadCrashes{};
  };
  void (*forget)(const LoadCrashes& crashes) = [](auto&) {};
  // Runs load(); a crash in it is written down as the plugin's.
  void (*guard)(const std::filesystem::path& plugin,
                const std::function<void()>& load) = [](auto&, auto& load) { load(); };
};

struct Rooms {
  const tn_host_eval* (*runtime)() = nullptr;  // NULL: graphs are not run
  // The text form of graphs; NULL: there is none.
  std::string (*print)(const tn_graph& graph, bool with_data) = nullptr;
  Result<tn_graph*> (*parse)(tn_ctx* ctx, std::string_view text) = nullptr;
  // JSON, see tn_host_component.list; NULL: components are found by name alone.
  std::string (*list_components)(Registry& registry, std::string_view role) = nullptr;
  const tn_host_blob* (*files)() = nullptr;  // NULL: there are no files in or out
  CrashWatch crashes = {};
};

const Rooms& rooms();

}  // namespace tenon::host
