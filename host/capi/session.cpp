// SPDX-License-Identifier: Apache-2.0
// tenon.h: sessions.
#include <memory>

#include "tenon/tenon.h"

#include "capi/capi.hpp"
#include "crashes/crash_report.hpp"
#include "registry/registry.hpp"
#include "services/boundary.hpp"
#include "values/json_any.hpp"

namespace tenon::host {
namespace {

struct Config {
  RegistryConfig registry;
  size_t threads = 0;  // 0: what the session starts with
  bool report_crashes = false;
};

Status read_field(const std::string& key, const Json& value, Config& config) {
  auto expected = [&](std::string_view what) {
    return invalid(cat("config: ", key, ": expected ", what, ", got ", value.dump()));
  };
  auto read_flag = [&](bool& flag) {
    if (!value.is_boolean()) return expected("true or false");
    flag = value.get<bool>();
    return Status();
  };
  if (key == "safe_mode") return read_flag(config.registry.safe_mode);
  if (key == "report_crashes") return read_flag(config.report_crashes);
  if (key == "drafts") return read_flag(config.registry.drafts);
  if (key == "threads") {
    if (!value.is_number_unsigned() || value == 0u || value > 4096u)
      return expected("a whole number from 1 to 4096");
    config.threads = value.get<size_t>();
    return {};
  }
  if (key == "plugin_path") {
    if (!value.is_array()) return expected("a list of folders");
    for (const Json& folder : value) {
      if (!folder.is_string() || folder == "") return expected("a list of folders");
      config.registry.plugin_path.push_back(folder.get<std::string>());
    }
    return {};
  }
  constexpr std::string_view kKeys[] = {"plugin_path", "safe_mode", "threads", "drafts",
                                        "report_crashes"};
  return invalid(
      cat("config: expected plugin_path, safe_mode, threads, drafts or report_crashes, got '", key,
          "'", did_you_mean(key, kKeys)));
}

Result<Config> read_config(std::string_view text) {
  Config config;
  TN_TRY(fields, parse_object(text, "config"));
  for (const auto& [key, value] : fields.items())
    TN_CHECK(read_field(key, value, config));
  return config;
}

Status open(std::string_view text, tenon_session** out) {
  TN_TRY(config, read_config(text));
  if (config.report_crashes) report_crashes();
  auto session = std::make_unique<tenon_session>(std::move(config.registry));
  if (config.threads) session->host.threads = config.threads;
  *out = session.release();
  return {};
}

}  // namespace
}  // namespace tenon::host

namespace tenon::host::exported {

tn_status* tenon_open(tn_str config, tenon_session** out) {
  *out = nullptr;
  return guarded([&] { return open(view(config), out); });
}

void tenon_close(tenon_session* session) {
  delete session;
}

const tn_host* tenon_host(tenon_session* session) {
  return &session->host.own->host;
}

}  // namespace tenon::host::exported
