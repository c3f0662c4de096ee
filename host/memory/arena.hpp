// SPDX-License-Identifier: Apache-2.0
#pragma once
// The service "tenon.host.arena/1"; plans of the host use it as it stands here.

#include <span>

#include "tenon/host/arena.h"

#include "services/status.hpp"

namespace tenon::host {

using ArenaBlock = tn_arena_block;
inline constexpr uint64_t kArenaAlign = 64;

// Fills in the offsets; align is a power of two.
Result<tn_arena_size> place_blocks(std::span<ArenaBlock> blocks, uint64_t align = kArenaAlign);

const tn_host_arena* arena_service();

}  // namespace tenon::host
