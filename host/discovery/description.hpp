// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a plugin says about itself, read from the section ".tenon.plugin" of its file (plugin.h has
// the format). Reading maps nothing and runs none of the plugin's code.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "services/status.hpp"

namespace tenon::host {

struct ComponentText {
  std::string plugin;  // the id of the one that brings it
  std::string role;
  std::string id;
  std::string version;
  std::string summary;
  std::string schema;  // JSON, or empty: no options
};

struct PluginText {
  std::string id;
  std::string version;
  std::string name;
  std::string vendor;
  std::string license;
  std::string url;
  std::vector<ComponentText> components;

  const ComponentText* find(std::string_view role, std::string_view of_id) const;  // or NULL
};

Result<PluginText> read_description(const std::filesystem::path& file);

// The records of one section.
Result<PluginText> parse_description(std::string_view section);

}  // namespace tenon::host
