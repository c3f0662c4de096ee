// SPDX-License-Identifier: Apache-2.0
#pragma once
// ResNet-50 and MiniLM, inference and training steps, with weights from a seed.

#include <functional>

#include <nlohmann/json.hpp>

#include "tenon/tenon.h"

#include "device/device.hpp"

namespace tenon::cuda {

// Called with each figure as soon as it is there.
using Print = std::function<void(const std::string& name, const nlohmann::json& figures)>;

// One entry for each network and precision: milliseconds a run, from inputs on the device to
// outputs on the CPU (wall), and of the device's work alone (kernels); nodes left to another
// backend. What fails is an entry with the reason, and the rest goes on.
void measure_models(tenon_session* session, Device& device, const Print& print);

}  // namespace tenon::cuda
