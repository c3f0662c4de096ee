// SPDX-License-Identifier: Apache-2.0
#pragma once
// For batch columns: inputs with the new first axis, and attributes that count axes.

#include "tenon/sdk/alike.hpp"

#include "dims.hpp"

namespace tenon::ops {

// Input i with the new axis: as it is, or repeated for every example.
Value for_all_examples(Batching& b, uint64_t i);
// How many examples, as an integer tensor of one element.
Value example_count(Batching& b);
// The integers of an input that counts axes, or shapes of one example, or nothing when computed.
Result<std::vector<int64_t>> stated_ints(Batching& b, uint64_t i);
// Axes of one example among those of all.
std::vector<int64_t> shifted(std::vector<int64_t> axes, size_t rank);

// Batch columns that several rows share: the attribute `axis` counts one more.
Status batch_first_by_axis(Batching& b);  // only input 0 has the new axis
Status batch_all_by_axis(Batching& b);    // all inputs have it

}  // namespace tenon::ops
