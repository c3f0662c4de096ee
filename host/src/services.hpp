// SPDX-License-Identifier: Apache-2.0
#pragma once
// Services without an object of their own; the others are declared beside their objects.

#include "tenon/host/cancel.h"
#include "tenon/host/memory.h"
#include "tenon/host/random.h"

namespace tenon::host {

const tn_host_cancel* cancel_service();
const tn_host_memory* memory_service();
const tn_host_random* random_service();

}  // namespace tenon::host
