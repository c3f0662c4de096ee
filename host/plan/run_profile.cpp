// SPDX-License-Identifier: Apache-2.0
#include "plan/run_profile.hpp"

#include <map>

#include <nlohmann/json.hpp>

#include "services/boundary.hpp"

namespace tenon::host {

Status add_partition_profile(BackendUse& use, const Step& step, nlohmann::json& profile) {
  if (!use.table->profile) return {};
  std::string text;
  tn_sink sink = sink_into(&text);
  TN_CHECK(use.called("profile", use.table->profile(use.self, step.exe, &sink)));
  nlohmann::json layers = nlohmann::json::parse(text, nullptr, false);
  if (!layers.is_array()) return {TN_INTERNAL, cat("backend ", use.id, ": profile is no array")};
  for (nlohmann::json& layer : layers) {
    layer["backend"] = use.id;
    profile.push_back(std::move(layer));
  }
  return {};
}

void add_control_profile(const Step& step,
                         uint64_t ns,
                         nlohmann::json& layers,
                         nlohmann::json& profile) {
  std::map<std::string, size_t> known;
  uint64_t inside = 0;
  for (nlohmann::json& layer : layers) {
    inside += layer.value("ns", uint64_t{0});
    auto [at, is_new] = known.try_emplace(layer.value("name", ""), profile.size());
    if (is_new) {
      profile.push_back(std::move(layer));
      continue;
    }
    nlohmann::json& sum = profile[at->second];
    sum["ns"] = sum.value("ns", uint64_t{0}) + layer.value("ns", uint64_t{0});
    for (const char* key : {"flops", "bytes"})
      sum[key] = sum.value(key, 0.0) + layer.value(key, 0.0);
  }
  profile.push_back({{"name", step.names[0]},
                     {"op", std::string(view(step.row->type))},
                     {"backend", "host"},
                     {"kernel", "control"},
                     {"ns", ns - std::min(ns, inside)},
                     {"flops", 0},
                     {"bytes", 0}});
}

}  // namespace tenon::host
