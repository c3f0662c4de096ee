// SPDX-License-Identifier: Apache-2.0
#include "registry/registry.hpp"

#include <algorithm>
#include <cstddef>

#include "graph/op_table.hpp"
#include "schemas/option_schema.hpp"
#include "services/log.hpp"
#include "services/trace.hpp"

namespace tenon::host {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLeastOp = offsetof(tn_op, sample) + sizeof(void*);
constexpr uint64_t kMostRows = 65536;

}  // namespace

Registry::Registry(Session* session, RegistryConfig config)
    : session_(session), config_(std::move(config)), folders_(search_folders(config_)) {
  session_->ops->on_missing = [this](std::string_view domain, std::string_view type,
                                     uint64_t version) { load_operator(domain, type, version); };
}

Registry::~Registry() {
  session_->ops->on_missing = nullptr;  // plugins that leave load no others
  for (Candidate& c : candidates_)
    for (void* self : c.row_selves)
      c.plugin->table.destroy(self);
}

Registry::Candidate& Registry::add(const fs::path& file, size_t folder) {
  Candidate& c = candidates_.emplace_back();
  c.file = file;
  c.folder = folder;
  Result<PluginText> text = read_description(file);
  if (!text.ok()) {
    c.refused = text.status().text();
    return c;
  }
  c.text = std::move(*text);
  for (const Candidate& other : candidates_)
    if (&other != &c && usable(other) && other.text.id == c.text.id) c.shadowed_by = other.file;
  c.crashes = rooms().crashes.crashes_of(file);
  c.is_quarantined = c.crashes.is_quarantined();
  if (c.is_quarantined)
    c.refused = cat("quarantined: loading it crashed the process ", c.crashes.signals.size(),
                    " times, last by ", c.crashes.signals.back(),
                    "; to try again: tenon plugin forgive ", c.text.id);
  return c;
}

// What is asked for a component of a role may do without one that is quarantined, but not silently.
void Registry::warn_of_quarantine(std::string_view role) {
  for (Candidate& c : candidates_) {
    auto is_of_role = [role](const ComponentText& t) { return t.role == role; };
    auto brought = std::find_if(c.text.components.begin(), c.text.components.end(), is_of_role);
    if (!c.is_quarantined || c.is_warned_of || brought == c.text.components.end()) continue;
    c.is_warned_of = true;
    log_service()->write(session_->own, TN_LOG_WARNING,
                         str(cat("plugin ", c.text.id, " (", c.file.string(), ") with ",
                                 brought->id, " of role ", role, " is not used: ", c.refused)));
  }
}

// Folders are read when a plugin is first asked for: a session that needs none reads none.
void Registry::scan() {
  if (scanned_) return;
  scanned_ = true;
  for (size_t i = 0; i < folders_.size(); ++i) {
    if (!folders_[i].ignored.empty()) continue;
    for (const fs::path& file : plugin_files(folders_[i], folders_[i].ignored))
      add(file, i);
  }
}

Status Registry::load(std::string_view path_or_id) {
  std::lock_guard hold(lock_);
  scan();
  if (path_or_id.empty()) return invalid("plugin: expected a path or an id, got ''");
  bool is_path = path_or_id.find('/') != std::string_view::npos;
  std::error_code failed;
  fs::path path = is_path ? fs::absolute(path_or_id, failed) : fs::path();
  if (is_path && !fs::is_regular_file(path, failed))
    return not_found(cat("plugin ", path_or_id, ": no such file"));
  std::vector<std::string_view> names;
  for (Candidate& c : candidates_) {
    if (is_path ? fs::equivalent(c.file, path, failed)
                : c.text.id == path_or_id && c.shadowed_by.empty())
      return load(c);
    names.push_back(c.text.id);
  }
  if (is_path) return load(add(path, kNoFolder));
  std::string message =
      cat("plugin ", path_or_id, ": not found", did_you_mean(path_or_id, names), "; looked in");
  for (const SearchFolder& searched : folders_)
    message += cat(" ", searched.folder.string(),
                   searched.ignored.empty() ? "" : cat(" (not: ", searched.ignored, ")"));
  return not_found(message);
}

Status Registry::load(Candidate& c) {
  if (c.plugin) return {};
  std::string what = cat("plugin ", c.file.string());
  if (!c.refused.empty()) return {TN_FAILED_PRECONDITION, cat(what, ": ", c.refused)};
  if (!c.shadowed_by.empty())
    return {TN_ALREADY_EXISTS, cat(what, ": ", c.shadowed_by, " brings the same plugin")};
  if (c.loading)
    return {TN_FAILED_PRECONDITION, cat(what, ": it is being loaded; does it need itself?")};
  c.loading = true;
  Status failed;
  rooms().crashes.guard(c.file, [&] {
    rooms().crashes.know_plugin(c.file, c.text.id);
    Span here(*session_->trace, "load of plugin", c.text.id);
    auto plugin = std::make_unique<Plugin>(session_, c.text.id);
    plugin->file = c.file;
    failed = load_plugin(*plugin, c.text);
    (failed.ok() ? c.plugin : c.failed) = std::move(plugin);
  });
  rooms().crashes.forget(c.crashes);  // it did not crash this time
  c.loading = false;
  for (size_t i = 0; failed.ok() && i < c.plugin->components.size(); ++i)
    if (view(c.plugin->components[i].role) == kOperatorsRole && allows(c.plugin->components[i]))
      failed = add_rows(c, c.plugin->components[i]);
  if (failed.ok()) {
    for (const std::string& remark : remarks(c))
      log_service()->write(session_->own, TN_LOG_WARNING,
                           str(cat("plugin ", c.text.id, ": ", remark)));
    return {};
  }
  take_back(c);
  c.refused = failed.text();
  return std::move(failed).in(what);
}

// A load is whole or nothing: of a plugin that is refused no row stays.
void Registry::take_back(Candidate& c) {
  if (!c.plugin) return;
  session_->ops->drop(&c.plugin->ctx);
  for (void* self : c.row_selves)
    c.plugin->table.destroy(self);
  c.row_selves.clear();
  c.failed = std::move(c.plugin);
}

Status Registry::add_rows(Candidate& c, const tn_component& component) {
  const tn_plugin& plugin = c.plugin->table;
  std::string id(view(component.id));
  void* self = nullptr;
  auto made = [&]() -> Status {
    TN_TRY(defaults, validate_options(session_->own, view(component.options_schema), nullptr, id));
    return Status(
        plugin.create(c.plugin->state, component.role, component.id, defaults.get(), &self));
  };
  if (Status failed = made(); !failed.ok())
    return {TN_FAILED_PRECONDITION, "its rows cannot be had", id, std::move(failed)};
  c.row_selves.push_back(self);
  const void* table = plugin.get_interface(self, component.role);
  TN_TRY(ops, adopt_struct(cat(id, ": table tenon.ops/1"), static_cast<const tn_ops*>(table),
                           sizeof(tn_ops)));
  if (ops.count > kMostRows || (ops.count && !ops.rows))
    return {TN_FAILED_PRECONDITION, cat(id, ": table tenon.ops/1 has ", ops.count, " rows but ",
                                        ops.rows ? "too many" : "no array")};
  std::vector<tn_op> rows;
  for (uint64_t i = 0; i < ops.count; ++i) {
    TN_TRY(row, adopt_struct(cat(id, ": operator row ", i), ops.rows[i], kLeastOp));
    rows.push_back(row);
  }
  TN_CHECK(session_->ops->add(rows, &c.plugin->ctx, self));  // which copies them
  for (const tn_op& row : rows)
    rooms().crashes.know_row(row);
  return {};
}

Status Registry::no_component(std::string_view role, std::string_view id) {
  std::string message = cat("component ", id, " of role ", role, ": not found");
  std::vector<std::string_view> names;
  for (const Candidate& c : candidates_) {
    for (const ComponentText& t : c.text.components) {
      std::string why = t.id == id ? why_no_role(t.role) : "";
      if (!why.empty())
        return not_found(cat(message, ": plugin ", c.file.string(), " brings one, but ", why));
      if (t.role != role) continue;
      names.push_back(t.id);
      if (t.id != id) continue;
      warn_of_quarantine(role);  // whoever asks may go on without it
      return {TN_FAILED_PRECONDITION,
              cat("component ", id, " of role ", role, ": plugin ", c.file.string(),
                  " brings it, but cannot be used: ", why_not(c))};
    }
  }
  std::string near = did_you_mean(id, names);
  if (near.empty()) near = "; 'tenon plugin doctor' shows every folder and file, and why not";
  return not_found(cat(message, near));
}

Result<Registry::Found> Registry::find(std::string_view role, std::string_view id) {
  std::lock_guard hold(lock_);
  scan();
  for (Candidate& c : candidates_) {
    if (!usable(c) || !c.text.find(role, id)) continue;
    TN_CHECK(load(c));
    const tn_component* component = c.plugin->find(role, id);
    if (!allows(*component))
      return Status{TN_FAILED_PRECONDITION,
                    cat("component ", id, " of role ", role,
                        " is a draft and may change: enable drafts to use it")};
    return Found{c.plugin.get(), component};
  }
  return no_component(role, id);
}

void Registry::load_operator(std::string_view domain, std::string_view type, uint64_t version) {
  std::lock_guard hold(lock_);
  scan();
  auto brings_rows = [](const ComponentText& t) { return t.role == kOperatorsRole; };
  for (bool builtin : {true, false}) {
    for (Candidate& c : candidates_) {
      if (!usable(c) || c.plugin || c.loading || builtin != (source(c) == "built-in")) continue;
      if (std::none_of(c.text.components.begin(), c.text.components.end(), brings_rows)) continue;
      Status failed = load(c);
      if (!failed.ok())
        log_service()->write(session_->own, TN_LOG_WARNING, str(failed.text()));
      else if (session_->ops->find(domain, type, version))
        return;
    }
  }
  warn_of_quarantine(kOperatorsRole);
}

}  // namespace tenon::host
