// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strides, dilations and padding of Conv, ConvTranspose and pooling nodes, as oneDNN wants them and
// as our own kernels do.

#include "graph/graph.hpp"
#include "kernels/windows.h"

namespace tenon::onednn {

struct Window {
  Dims kernel;
  Dims strides;
  Dims dilates;  // oneDNN counts from 0
  Dims pad_begin;
  Dims pad_end;
};

// Why a value is no image that oneDNN convolves or pools; empty: it is one.
std::string refuse_image(const Value& value);
// in and out: complete dims; kernel: spatial extents. For ConvTranspose swap in and out.
// Padding is worked out from the shapes, so auto_pad and ceil_mode need no case of their own.
// Of an axis the begin, and behind all of these the ends. With auto_pad the attribute says nothing,
// and may have any length.
Dims pads_of(const Node& node, size_t n_spatial);
Window find_window(const Node& node, const Dims& in, const Dims& out, const Dims& kernel);
// Of one or two axes, as height and width.
kernels::Windows windows_of(const Dims& in, const Dims& out, const Window& window);
// Of a Conv.
kernels::Windows windows_of(const Graph& graph, const Node& node);
// Whether a Conv has a window of its own for each channel, and one result of each.
bool is_depthwise(const Graph& graph, const Node& node);
// How many filters of its own each of several channels has; 0: filters see more than one channel,
// or there is one.
int64_t filters_of_each(const Graph& graph, const Node& node);

}  // namespace tenon::onednn
