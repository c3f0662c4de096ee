// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many threads this process may keep busy: the CPUs of its affinity mask, and no more than the
// quota of its control group and of all above it.

#include "control_groups.hpp"

namespace tenon::host::team {

// CPUs that the quotas leave, in fractions; infinity without any.
double quota_cpus(const ControlGroupFiles& files);

// At least 1. A quota of 1.5 CPUs is one thread: two would spend it early, and then all threads
// stand still until the period ends.
int thread_budget(const ControlGroupFiles& files = {});

}  // namespace tenon::host::team
