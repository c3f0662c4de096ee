// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model file without its weights. protobuf would copy every tensor's raw_data and refuses files
// over 2 GB; so a walk over the wire format comes first. It copies everything but raw_data, in
// whose place it leaves 16 bytes that say where in the file the data is: a Window. Every raw_data
// of the copy is such a window, so nothing in a file can pass for one. Training parts
// (ModelProto.training_info) are left out: Tenon has its own way to train.

#include <cstdint>
#include <string>
#include <string_view>

#include "tenon/sdk/status.hpp"

namespace tenon::onnx_plugin {

struct Window {
  uint64_t offset;
  uint64_t bytes;
};

struct Skeleton {
  std::string bytes;  // what protobuf parses
  bool had_training = false;
};

Result<Skeleton> make_skeleton(std::string_view file);

// The window that stands in a raw_data field of a skeleton.
Result<Window> window_of(std::string_view raw_data);

}  // namespace tenon::onnx_plugin
