// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plugins that can be found, by their descriptions, and the ones that are loaded. A plugin is
// loaded when one of its components is named. Thread-safe.

#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/description.hpp"
#include "discovery/search_folders.hpp"
#include "registry/adopt.hpp"
#include "registry/loader.hpp"
#include "services/rooms.hpp"
#include "services/status.hpp"

namespace tenon::host {

// Rows of operators: all are used, whoever brings them.
inline constexpr std::string_view kOperatorsRole = "tenon.ops/1";

class Registry {
 public:
  Registry(Session* session, RegistryConfig config);
  ~Registry();

  // By the id of a plugin, or by the path of its file (which has a '/').
  Status load(std::string_view path_or_id);

  struct Found {
    Plugin* plugin;
    const tn_component* component;
  };
  // Loads the plugin that brings the component.
  Result<Found> find(std::string_view role, std::string_view id);

  // Loads plugins that bring operator rows until one of them has this operator: those beside
  // libtenon first. Each is tried once; one that cannot be loaded is a warning in the log.
  void load_operator(std::string_view domain, std::string_view type, uint64_t version);

  // The components of a role, in order of preference. The texts live as long as the registry.
  std::vector<const ComponentText*> described(std::string_view role);
  // The component of this role whose schema's "extensions" match the file's name.
  Result<std::string> for_file(std::string_view role, std::string_view path);

  std::string list_components(std::string_view role);  // JSON, see tn_host_component.list
  std::string list_plugins();                          // JSON, see tenon_plugin_list
  std::string doctor();                                // JSON, see tenon_plugin_doctor
  std::string balance();                               // JSON, see tenon_plugin_balance

 private:
  struct Candidate {
    std::filesystem::path file;
    size_t folder;
    PluginText text;
    std::string refused;      // why it cannot be used; empty: it can
    std::string shadowed_by;  // the file that brings the same plugin earlier in the search order
    LoadCrashes crashes;
    bool is_quarantined = false, is_warned_of = false, loading = false;
    std::unique_ptr<Plugin> plugin;
    std::unique_ptr<Plugin> failed;  // could not be loaded; statuses that it made point at it
    std::vector<void*> row_selves;   // instances of its operator components
  };
  static constexpr size_t kNoFolder = SIZE_MAX;  // named by its path
  static bool usable(const Candidate& c) { return c.refused.empty() && c.shadowed_by.empty(); }
  std::string source(const Candidate& c) const {
    return c.folder == kNoFolder ? "path" : folders_[c.folder].source;
  }

  bool allows(const tn_component& component) const {
    return config_.drafts || (component.flags & TN_COMP_DRAFT) == 0;
  }
  static std::string why_not(const Candidate& c);
  // Of its components: which have a role that is not there, rows that are drafts, or another
  // plugin's id.
  std::vector<std::string> remarks(const Candidate& c) const;

  void scan();
  void warn_of_quarantine(std::string_view role);
  Candidate& add(const std::filesystem::path& file, size_t folder);
  Status load(Candidate& candidate);
  void take_back(Candidate& candidate);
  Status add_rows(Candidate& candidate, const tn_component& component);
  Status no_component(std::string_view role, std::string_view id);

  Session* session_;
  RegistryConfig config_;
  std::recursive_mutex lock_;  // a plugin's init may ask for components of others
  bool scanned_ = false;
  std::vector<SearchFolder> folders_;
  std::deque<Candidate> candidates_;  // in order of preference
};

}  // namespace tenon::host
