// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options that both passes have, as members of the "properties" of their JSON. Macros, as a
// component's description is one literal.

// clang-format off
#define TENON_METRICS_OPTIONS \
  R"("data": {"type": "component", "role": "tenon.dataset/1", "description": "the data set: one, an id or a file"},)" \
  R"("plan": {"type": "object", "description": "how the model runs: backend, precision, threads and what the backend knows"},)" \
  R"("batch": {"type": "integer", "minimum": 1, "description": "batch size; default: what the model fixes, or 32"})"
// clang-format on
