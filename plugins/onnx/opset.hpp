// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which opset a graph needs: from ONNX's schemas, tabulated at build by opset_rows.py.

#include "tenon/sdk/graph.hpp"

namespace tenon::onnx_plugin {

inline constexpr int64_t kLowestWritten = 21;
// ONNX Runtime 1.31 refuses newer ones: they are written on request only.
inline constexpr int64_t kHighestUnasked = 26;

// The lowest opset from 21 on whose definition of the operator takes this node: its attributes, its
// number of inputs, its element types. 21 for what ONNX does not define. An error where a file with
// it would be invalid: element types that no definition lets differ, sequences of a type that none
// has.
Result<int64_t> lowest_opset(const Node& node);

// How many of its first outputs an operator of ONNX has to have a name for; of others 0.
uint64_t required_outputs(const Node& node);

// The ir version that came with the opset.
int64_t ir_version_of(int64_t opset);

}  // namespace tenon::onnx_plugin
