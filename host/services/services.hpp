// SPDX-License-Identifier: Apache-2.0
#pragma once
// Services without an object of their own; the others are declared beside their objects.

#include <array>
#include <cstdint>

#include "tenon/host/cancel.h"
#include "tenon/host/memory.h"
#include "tenon/host/random.h"

namespace tenon::host {

const tn_host_cancel* cancel_service();
const tn_host_memory* memory_service();
const tn_host_random* random_service();

// Block `block` of a random stream: its numbers 4 * block and the three that follow.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t stream, uint64_t block);

}  // namespace tenon::host
