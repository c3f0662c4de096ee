// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a kernel slides over one or two spatial axes.

#include "handlers.hpp"

namespace tenon::cuda {

// One-dimensional data has a first axis of size 1.
struct Window {
  int64_t in[2] = {1, 1}, out[2] = {1, 1}, kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1}, dilation[2] = {1, 1}, pad[2] = {0, 0}, end_pad[2] = {0, 0};
};

// Empty when the node has one or two spatial axes.
std::string refuse_window(const Imported& graph, const NodeInfo& node);
Window window_of(const Imported& graph, const NodeInfo& node, const Dims& kernel);

}  // namespace tenon::cuda
