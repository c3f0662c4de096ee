// SPDX-License-Identifier: Apache-2.0
// Bytes as a file for the reader of plugins/onnx.
#include "fuzz_session.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::fuzz::load(data, size, "onnx");
  return 0;
}
