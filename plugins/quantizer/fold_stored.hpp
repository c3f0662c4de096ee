// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constants that are stored in few bits, as the floats that they stand for.

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon::quantizer {

// Integers of at most 16 bits and floating-point numbers of 8: how values are stored.
bool is_narrow(Value v);
// Stored constants that operators only move, as a Transpose, become constants of what is moved.
Status fold_moves(tn_ctx* ctx, tn_graph* graph, const Cancel& cancel);
// All floats that are made of stored constants alone become constants, under their names. The
// number of them.
Result<uint64_t> fold_stored(tn_ctx* ctx, tn_graph* graph, const Cancel& cancel);

}  // namespace tenon::quantizer
