// SPDX-License-Identifier: Apache-2.0
#pragma once
// What batching rules (column batch) share: inputs with the new first axis, and attributes that
// count axes.

#include "tenon/sdk/alike.hpp"

#include "dims.hpp"

namespace tenon::ops {

// Input i with the new axis: as it is, or repeated for every example.
Value for_all_examples(Batching& b, uint64_t i);
// How many examples, as an integer tensor of one element.
Value example_count(Batching& b);
// Where each example of `elements` begins in all of them, counted flat: [e, 1, ..] with as many
// ones as an example has axes.
Value example_offsets(Batching& b, int64_t elements, size_t rank);
// The integers of an input that counts axes, or shapes of one example, or nothing when computed.
Result<std::vector<int64_t>> stated_ints(Batching& b, uint64_t i);
// The number itself; -1 where it is not known.
int64_t known_example_count(Batching& b);
// [e, n, ...] as [e*n, ...], for all examples; and a result back, by the type of output i.
Value examples_as_rows(Batching& b, uint64_t i);
Value rows_as_examples(Batching& b, Value y, uint64_t i = 0);
// [e, n, c, s..] as [n, e*c, s..]: examples become groups of channels; and back.
Value examples_as_groups(Batching& b, uint64_t i);
Value groups_as_examples(Batching& b, Value y, uint64_t i = 0);
// Axes of one example among those of all.
std::vector<int64_t> shifted(std::vector<int64_t> axes, size_t rank);

// A convolution with weights of its own for every example: one of as many groups. Input 1 and what
// follows it are rows of channels.
Status batch_convolution(Batching& b);

// Batch columns that several rows share: the attribute `axis` counts one more.
Status batch_first_by_axis(Batching& b);  // only input 0 has the new axis
Status batch_all_by_axis(Batching& b);    // all inputs have it
// The first axis of input 0 counts rows that are treated alone: examples are more of them.
Status batch_by_rows(Batching& b);

}  // namespace tenon::ops
