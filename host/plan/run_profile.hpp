// SPDX-License-Identifier: Apache-2.0
#pragma once
// What steps of a run report of their time: rows of tn_host_eval.profile.

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"

namespace tenon::host {

// The layers of a partition, as its backend reports them; nothing where it reports none.
Status add_partition_profile(BackendUse& use, const Step& step, nlohmann::json& profile);

// The layers of the bodies, those of all iterations as one, and what remains for the node itself.
void add_control_profile(const Step& step,
                         uint64_t ns,
                         nlohmann::json& layers,
                         nlohmann::json& profile);

}  // namespace tenon::host
