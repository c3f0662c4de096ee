// SPDX-License-Identifier: Apache-2.0
#pragma once
// A request to stop: one flag, set from any thread or signal handler, never unset.

#include <atomic>

#include "tenon/base.h"

#include "services/handle.hpp"

struct tn_cancel : tenon::host::Handle<tn_cancel> {
  std::atomic<int32_t> requested{0};
  static_assert(std::atomic<int32_t>::is_always_lock_free, "signal handlers set it");
};
