// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model with QuantizeLinear and DequantizeLinear nodes in integers: what each value between them
// is as one, node by node.

#include <nlohmann/json.hpp>

#include "tenon/sdk/edit.hpp"

namespace tenon::quantizer {

// Replaces what it can; returns what it could not: [{"node", "op", "why"}].
Result<nlohmann::ordered_json> rewrite_in_integers(tn_ctx* ctx, EditView edit);

}  // namespace tenon::quantizer
