// SPDX-License-Identifier: Apache-2.0
#pragma once
// TypeProto to type.

#include "tenon/sdk/tensor.hpp"

#include "model.hpp"

namespace tenon::onnx_plugin {

// Absent and partly absent types are fine; maps, opaque types and strings are refused.
Result<Type> read_type(const onnx::TypeProto& from);

}  // namespace tenon::onnx_plugin
