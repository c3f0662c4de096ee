// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the elements of a small result, one by one in row-major order, are among those of an
// operand.

#include <cstdint>
#include <optional>
#include <vector>

#include "lowering.hpp"

namespace tenon::onednn {

using Places = std::vector<size_t>;
constexpr size_t kFiller = SIZE_MAX;  // of a Pad: the element is no element of the operand

// What a Slice whose parameters are known sees of the view of its first input.
View sliced(const Lowering& lowering, const Node& node, View view);

// Of elements with these strides.
Places strided_places(const Dims& dims, const Dims& strides, int64_t offset = 0);
// Of an operand of `from` that is broadcast to `to`.
Places broadcast_places(const Dims& from, const Dims& to);
// Of the output of this number, for a node that only moves what its first input holds, by
// parameters that are known; nothing where it does more than that.
std::optional<Places> moved_places(const Lowering& lowering, const Node& node, size_t output);

}  // namespace tenon::onednn
