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

// Empty when value x has one or two spatial axes, and the kernel as many.
std::string refuse_window(const Imported& graph, int x, size_t kernel_rank);
// x and y: shapes of what the node's window goes over and of what comes out.
Window window_of(const NodeInfo& node, const Dims& x, const Dims& y, const Dims& kernel);

}  // namespace tenon::cuda
