// SPDX-License-Identifier: Apache-2.0
// Lists of plugins and components for people and programs, from descriptions alone.
#include <array>

#include "registry/registry.hpp"
#include "schemas/kept.hpp"

namespace tenon::host {
namespace {

Json component_json(const ComponentText& t) {
  return {{"role", t.role}, {"id", t.id}, {"version", t.version}, {"summary", t.summary}};
}

constexpr std::array<std::string_view, kHeldKinds> kHeldNames = {
    "statuses", "tensors", "graphs", "options", "blobs", "plans", "components", "blocks", "bytes"};

Json held_json(const tn_ctx& ctx) {
  Json counts = Json::object();
  for (size_t i = 0; i < kHeldKinds; ++i)
    counts[std::string(kHeldNames[i])] = ctx.held[i].load();
  return counts;
}

}  // namespace

std::string Registry::list_components(std::string_view role) {
  std::lock_guard hold(lock_);
  scan();
  warn_of_quarantine(role);
  Json all = Json::array();
  for (const Candidate& c : candidates_) {
    for (const ComponentText& t : c.text.components) {
      if (!usable(c) || (!role.empty() && t.role != role)) continue;
      Json one = component_json(t);
      one["plugin"] = c.text.id;
      one["schema"] = schema_json(t.schema);
      all.push_back(std::move(one));
    }
  }
  return json_text(all);
}

std::string Registry::list_plugins() {
  std::lock_guard hold(lock_);
  scan();
  Json all = Json::array();
  for (const Candidate& c : candidates_) {
    Json components = Json::array();
    for (const ComponentText& t : c.text.components) {
      components.push_back(component_json(t));
      components.back()["why"] = why_no_role(t.role);
    }
    all.push_back({{"id", c.text.id},
                   {"version", c.text.version},
                   {"name", c.text.name},
                   {"vendor", c.text.vendor},
                   {"license", c.text.license},
                   {"url", c.text.url},
                   {"file", c.file.string()},
                   {"source", source(c)},
                   {"loaded", c.plugin != nullptr},
                   {"usable", usable(c)},
                   {"why", why_not(c)},
                   {"crashes", c.crashes.signals},
                   {"crash_record", c.crashes.record.string()},
                   {"components", std::move(components)}});
  }
  return json_text(all);
}

std::string Registry::doctor() {
  std::lock_guard hold(lock_);
  scan();
  Json places = Json::array();
  for (size_t i = 0; i <= folders_.size(); ++i) {
    Json files = Json::array();
    for (const Candidate& c : candidates_) {
      if (c.folder != (i < folders_.size() ? i : kNoFolder)) continue;
      files.push_back({{"file", c.file.string()},
                       {"plugin", c.text.id},
                       {"usable", usable(c)},
                       {"loaded", c.plugin != nullptr},
                       {"why", why_not(c)},
                       {"remarks", remarks(c)}});
    }
    if (i == folders_.size() && files.empty()) continue;
    std::string why = i < folders_.size() ? folders_[i].ignored : "";
    places.push_back({{"folder", i < folders_.size() ? folders_[i].folder.string() : ""},
                      {"source", i < folders_.size() ? folders_[i].source : "path"},
                      {"searched", why.empty()},
                      {"why", why},
                      {"files", std::move(files)}});
  }
  return json_text(Json{{"places", std::move(places)}});
}

std::string Registry::balance() {
  std::lock_guard hold(lock_);
  Json all = Json::object();
  if (session_->own) all[session_->own->id] = held_json(*session_->own);
  for (const Candidate& c : candidates_)
    if (c.plugin) all[c.text.id] = held_json(c.plugin->ctx);
  return json_text(all);
}

}  // namespace tenon::host
