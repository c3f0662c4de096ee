// SPDX-License-Identifier: Apache-2.0
// What backends report of their executables.
#include <map>

#include "backends/backend_use.hpp"
#include "services/boundary.hpp"

namespace tenon::host {

nlohmann::json described(const BackendUse& use, void* exe) {
  if (!use.table->describe) return nlohmann::json::object();
  std::string text;
  tn_sink sink = sink_into(&text);
  const Status status(use.table->describe(use.self, exe, &sink));
  nlohmann::json out = nlohmann::json::parse(text, nullptr, false);
  return status.ok() && out.is_object() ? out : nlohmann::json::object();
}

Status add_profile(const BackendUse& use, void* exe, nlohmann::json& layers) {
  if (!use.table->profile) return {};
  std::string text;
  tn_sink sink = sink_into(&text);
  TN_CHECK(use.called("profile", use.table->profile(use.self, exe, &sink)));
  nlohmann::json own = nlohmann::json::parse(text, nullptr, false);
  if (!own.is_array()) return {TN_INTERNAL, cat("backend ", use.id, ": profile is no array")};
  for (nlohmann::json& layer : own) {
    layer["backend"] = use.id;
    layers.push_back(std::move(layer));
  }
  return {};
}

void add_control_profile(std::string_view node,
                         std::string_view op,
                         uint64_t ns,
                         nlohmann::json& bodies,
                         nlohmann::json& layers) {
  std::map<std::string, size_t> known;
  uint64_t inside = 0;
  for (nlohmann::json& layer : bodies) {
    inside += layer.value("ns", uint64_t{0});
    auto [at, is_new] = known.try_emplace(layer.value("name", ""), layers.size());
    if (is_new) {
      layers.push_back(std::move(layer));
      continue;
    }
    nlohmann::json& sum = layers[at->second];
    sum["ns"] = sum.value("ns", uint64_t{0}) + layer.value("ns", uint64_t{0});
    for (const char* key : {"flops", "bytes"})
      sum[key] = sum.value(key, 0.0) + layer.value(key, 0.0);
  }
  layers.push_back({{"name", node},
                    {"op", op},
                    {"backend", "host"},
                    {"kernel", "control"},
                    {"ns", ns - std::min(ns, inside)},
                    {"flops", 0},
                    {"bytes", 0}});
}

}  // namespace tenon::host
