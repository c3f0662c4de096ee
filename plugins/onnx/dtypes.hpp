// SPDX-License-Identifier: Apache-2.0
#pragma once
// ONNX's element types and Tenon's, both ways.

#include <cstdint>
#include <string>

#include "tenon/sdk/tensor.hpp"

namespace tenon::onnx_plugin {

// TN_DTYPE_NONE for what has no counterpart (strings), and for numbers that ONNX does not have.
uint32_t dtype_of_onnx(int32_t onnx_type);
// 0 when ONNX has no such type.
int32_t onnx_of_dtype(uint32_t dtype);
// "string (8)", for messages.
std::string onnx_type_text(int32_t onnx_type);

}  // namespace tenon::onnx_plugin
