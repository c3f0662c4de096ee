// SPDX-License-Identifier: Apache-2.0
// libtenon has all rooms.
#include "services/rooms.hpp"

#include "plan/plan.hpp"
#include "report/diff.hpp"
#include "text/text.hpp"

namespace tenon::host {

const Rooms& rooms() {
  static const Rooms all{eval_service, print_text, parse_text, diff_lines};
  return all;
}

}  // namespace tenon::host
