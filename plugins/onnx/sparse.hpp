// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights with many zeros, stored without them.

#include "tenon/sdk/edit.hpp"

#include "exporter.hpp"

namespace tenon::onnx_plugin {

// Moves weights that are smaller so out of `made.weights` into sparse initializers of its graph:
// ONNX's own form, 8 bytes of index for each value that is not zero.
Status as_sparse_tensors(Exporter& made);

// Before: a constant of which at least a quarter of the bytes would be saved
// After:  ConstantOfShape -> ScatterElements of its values that are not zero, at places that CumSum
//         makes of their gaps in uint8 -> Reshape: the same numbers, one byte of index for each
// Needs:  elements of whole bytes. Constants of bodies stay as they are. Edits `graph`.
Status as_gaps(tn_graph* graph);

}  // namespace tenon::onnx_plugin
