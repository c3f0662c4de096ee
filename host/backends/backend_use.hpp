// SPDX-License-Identifier: Apache-2.0
#pragma once
// Backends as plans use them: which ones, opened with which options, on which device; what they
// report of their executables.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/role/backend.h"

#include "registry/component.hpp"
#include "services/ref.hpp"
#include "values/options.hpp"

namespace tenon::host {

// A backend as one plan uses it.
struct BackendUse {
  std::string id;
  Ref<tn_component_ref> component;
  const tn_backend* table = nullptr;
  void* self = nullptr;
  Ref<tn_options> options;
  int32_t device = 0;    // index in devices()
  nlohmann::json about;  // what devices() says of it
  DLDevice dl{kDLCPU, 0};
  bool own_memory = false;   // its tensors live elsewhere: inputs and outputs are copied
  bool last_resort = false;  // takes what those that were asked for leave
  bool is_joined = false;    // is there for an option of the plan, not by its name

  // The failure of a call with backend and function in front.
  Status called(std::string_view function, tn_status* answer) const {
    return named(answer, component.get(), function);
  }
};

// An executable, freed through the backend that compiled it.
struct FreeExe {
  const BackendUse* use = nullptr;
  void operator()(void* exe) const { use->table->exe_free(use->self, exe); }
};
using Exe = std::unique_ptr<void, FreeExe>;

// The first one that did not join for an option; there always is one.
inline const BackendUse& preferred_of(const std::vector<std::unique_ptr<BackendUse>>& backends) {
  return **std::ranges::find(backends, false, [](const auto& use) { return use->is_joined; });
}

using BackendUses = std::vector<std::unique_ptr<BackendUse>>;

// A plan's options, read from a JSON object or "".
struct PlanOptions {
  std::vector<std::string> backends;  // empty: the default
  std::optional<size_t> cache_limit;
  nlohmann::json rest = nlohmann::json::object();  // for the backends
};
Result<PlanOptions> read_options(std::string_view text);

// In the order in which they are asked: those that join for an option, those that are named (where
// none is, the preferred one that finds a device here), and `reference`.
Result<BackendUses> open_backends(tn_ctx* ctx, const PlanOptions& options);

// What a backend says of an executable; an empty object where it says nothing.
nlohmann::json described(const BackendUse& use, void* exe);
// The layers of an executable with their times, behind those that are there.
Status add_profile(const BackendUse& use, void* exe, nlohmann::json& layers);
// The layers of the bodies of a control-flow node, those of all iterations as one, and what remains
// of `ns` for the node itself.
void add_control_profile(std::string_view node,
                         std::string_view op,
                         uint64_t ns,
                         nlohmann::json& bodies,
                         nlohmann::json& layers);

}  // namespace tenon::host
