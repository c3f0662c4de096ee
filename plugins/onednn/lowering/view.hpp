// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a value's elements lie: a buffer of the plan, an offset, strides, the stored type, and what
// stored integers mean. Reshape, Transpose, Slice, Split and DequantizeLinear make a new view of
// the same memory. A view whose quant has a scale stands for floating-point numbers kept as
// integers; bf16 likewise stands for f32.

#include <memory>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "graph/graph.hpp"

namespace tenon::onednn {

struct ChannelQuant {  // one scale per index of `axis`, zero points all 0
  int axis = 0;
  std::vector<float> scales;
};

struct View {
  int buffer = kNone;
  ElementType type = ElementType::kF32;
  Dims dims = {};
  Dims strides = {};   // in elements; any value where dims is 1
  int64_t offset = 0;  // in elements
  kernels::Quant quant = {};
  std::shared_ptr<const ChannelQuant> channels =
      {};  // constants only; shared: views are copied freely

  bool exists() const { return buffer != kNone; }
  bool is_quantized() const { return quant.scale != 0.0F || channels != nullptr; }
  int64_t count() const { return element_count(dims); }
  int64_t bytes() const { return kernels::bytes_for(type, count()); }
  int64_t offset_bytes() const { return offset * kernels::element_bytes(type); }
};

// Axis 1 innermost: [N, spatial..., C], oneDNN's nhwc. Same as row-major below rank 3.
Dims channels_last_strides(const Dims& dims);
// Strides that give the elements the order of `like`, without holes.
Dims dense_strides_like(const Dims& dims, const Dims& like);
// Equal where it matters: axes of extent 1 may have any stride.
bool same_strides(const Dims& dims, const Dims& a, const Dims& b);
// Strides over `dims`, to which the view is broadcast.
Dims broadcast_strides(const View& view, const Dims& dims);
// The same elements with the last two axes swapped.
View transposed(const View& view);
bool is_row_major(const View& view);
bool is_channels_last(const View& view);
// Covers its range of memory without holes, in some order of axes.
bool is_dense(const View& view);

dnnl::memory::data_type dnnl_type(ElementType type);  // undef where oneDNN has none
dnnl::memory::desc descriptor(const View& view);
// Of so many numbers side by side: scales, zero points, a bias.
dnnl::memory::desc vector_descriptor(int64_t count,
                                     dnnl::memory::data_type type = dnnl::memory::data_type::f32);
// Whether elements of one index lie between those of another, as those of the diagonals of some
// matrices do: oneDNN describes no such memory.
bool interleaves(const View& view);
// Of a view whose strides are known to be channels-last, whatever else they also are.
dnnl::memory::desc channels_last_descriptor(const View& view);
dnnl::memory::desc descriptor(const View& view, const Dims& dims, const Dims& strides);

}  // namespace tenon::onednn
