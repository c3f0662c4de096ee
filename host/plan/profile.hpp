// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the steps of a run took, as entries of a JSON array.

#include "plan/plan.hpp"

namespace tenon::host {

// The layers that a backend tells of its last profiled run of a part.
Status add_part_profile(const BackendUse& use, const Step& step, nlohmann::json* profile);

// The layers of a control-flow node's bodies, those of all iterations as one, and what remains of
// `ns` for the node itself.
void add_control_profile(const Step& step,
                         uint64_t ns,
                         nlohmann::json& layers,
                         nlohmann::json* profile);

}  // namespace tenon::host
