// SPDX-License-Identifier: Apache-2.0
#pragma once
// ResNet-50 and MiniLM, inference and training steps, with weights from a seed.

#include <nlohmann/json.hpp>

#include "tenon/tenon.h"

#include "tenon/sdk/status.hpp"

namespace tenon::cuda {

// Puts one entry for each network and precision into `out`: milliseconds a run, with the copies of
// inputs and outputs (wall), and of the device's work alone (kernels); nodes left to another
// backend. What fails is an entry with the reason, and the rest goes on.
void measure_models(tenon_session* session, nlohmann::json* out);

}  // namespace tenon::cuda
