// SPDX-License-Identifier: Apache-2.0
#pragma once
// SparseTensorProto to tensor: its values at their places, zeros elsewhere.

#include "read_tensor.hpp"

namespace tenon::onnx_plugin {

// The dense tensor of a skeleton's SparseTensorProto. Places are those of the flattened tensor, or
// an index for each axis; they rise, so that no element is stated twice.
Result<Tensor> read_sparse_tensor(ModelFiles& files, const onnx::SparseTensorProto& from);

}  // namespace tenon::onnx_plugin
