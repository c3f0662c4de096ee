// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stands behind a reader: what was read is compiled and run, a data set is read to its end.
// Refusals are answers; what must not happen is that the process dies. How many came how far is
// printed at the end.

#include <cstdint>
#include <string>

#include "tenon/tenon.h"

namespace tenon::fuzz {

// On the backend "reference", with numbers for every input, sizes that are not known being 2.
// A run has a second of the processor's time and is then asked to stop.
void compile_and_run(tenon_session* session, const tn_graph* graph);
// The fields and a first and a last sample.
void read_samples(tenon_session* session, const std::string& component, const std::string& path);

}  // namespace tenon::fuzz
