// SPDX-License-Identifier: Apache-2.0
// For programs that use the engine without a host that loads it: the host's team, and its arena
// planner, given by hand.
#include "tenon/sdk/services.hpp"

#include "memory/arena.hpp"
#include "threads/service.hpp"

namespace tenon {
namespace {

[[maybe_unused]] const tn_host_team* const given = services.team = host::team_service();
[[maybe_unused]] const tn_host_arena* const planner = services.arena = host::arena_service();

}  // namespace
}  // namespace tenon
