// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators whose result element [i, j, ..] is the source's [f(i), g(j), ..], or a filler where a
// map says so: Pad in all modes, Slice with any steps, Tile, nearest Resize. Each axis has a table
// of source offsets, written when the step is made if all parameters are constants, else each time
// it runs.

#include <span>

#include "dense.hpp"

namespace tenon::onednn {

struct AxisTables {
  std::span<const int64_t> from;  // dims of the source
  std::span<const int64_t> to;    // dims of the result
  void* const* parameters;        // the node's inputs
  int64_t* entries;               // [sum of to]: coordinate in the source, -1 for the filler
};
// Fills the tables from the node's inputs; nullptr, or what is wrong with them.
using FillTables = std::function<const char*(const AxisTables&)>;

// No map says that there is a filler.
constexpr int kNoFiller = kNone - 1;
// filler: the input that holds it, kNone for zero, or kNoFiller.
void lower_axis_map(Lowering& lowering, int node, const char* kernel, int filler, FillTables fill);

}  // namespace tenon::onednn
