// SPDX-License-Identifier: Apache-2.0
// libtenon has all rooms.
#include "services/rooms.hpp"

#include "crashes/crash_report.hpp"
#include "crashes/load_crashes.hpp"
#include "crashes/whereabouts.hpp"
#include "files/blob.hpp"
#include "plan/plan.hpp"
#include "registry/registry.hpp"
#include "text/text.hpp"

namespace tenon::host {

const Rooms& rooms() {
  static const Rooms all{
      .runtime = eval_service,
      .print = print_text,
      .parse = parse_text,
      .list_components = [](Registry& plugins,
                            std::string_view role) { return plugins.list_components(role); },
      .files = blob_service,
      .crashes = {enter, leave, know_plugin, know_row, know_table, crashes_of, forget,
                  [](const std::filesystem::path& plugin, const std::function<void()>& load) {
                    LoadGuard guard(plugin);
                    load();
                  }},
  };
  return all;
}

}  // namespace tenon::host
