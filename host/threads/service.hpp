// SPDX-License-Identifier: Apache-2.0
#pragma once
// The team as plugins get it.

#include "tenon/host/team.h"

namespace tenon::host {

const tn_host_team* team_service();

}  // namespace tenon::host
