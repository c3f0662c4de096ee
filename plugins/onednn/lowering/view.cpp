// SPDX-License-Identifier: Apache-2.0
#include "view.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "matrix_descriptor.hpp"

namespace tenon::onednn {
namespace {

Dims strides_in_order(const Dims& dims, const std::vector<int>& inner_to_outer) {
  Dims strides(dims.size(), 1);
  int64_t stride = 1;
  for (int axis : inner_to_outer) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(dims[axis], 1);
  }
  return strides;
}

}  // namespace

Dims channels_last_strides(const Dims& dims) {
  if (dims.size() < 3) return row_major_strides(dims);
  std::vector<int> order = {1};
  for (int axis = static_cast<int>(dims.size()) - 1; axis >= 2; --axis)
    order.push_back(axis);
  order.push_back(0);
  return strides_in_order(dims, order);
}

Dims dense_strides_like(const Dims& dims, const Dims& like) {
  // Axes of extent 1 say nothing about the order; what their stride is does not matter.
  std::vector<int> order;
  for (int axis = static_cast<int>(dims.size()) - 1; axis >= 0; --axis)
    order.push_back(axis);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    int64_t stride_a = dims[a] == 1 ? 0 : like[a];
    int64_t stride_b = dims[b] == 1 ? 0 : like[b];
    return stride_a < stride_b;
  });
  return strides_in_order(dims, order);
}

bool same_strides(const Dims& dims, const Dims& a, const Dims& b) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1 && a[i] != b[i]) return false;
  }
  return true;
}

Dims broadcast_strides(const View& view, const Dims& dims) {
  Dims strides(dims.size(), 0);
  const size_t shift = dims.size() - view.dims.size();
  for (size_t i = 0; i < view.dims.size(); ++i)
    strides[i + shift] = view.dims[i] == 1 ? 0 : view.strides[i];
  return strides;
}

View transposed(const View& view) {
  View result = view;
  size_t rank = view.dims.size();
  if (rank < 2) return result;
  std::swap(result.dims[rank - 1], result.dims[rank - 2]);
  std::swap(result.strides[rank - 1], result.strides[rank - 2]);
  return result;
}

bool is_row_major(const View& view) {
  return same_strides(view.dims, view.strides, row_major_strides(view.dims));
}

bool is_channels_last(const View& view) {
  return same_strides(view.dims, view.strides, channels_last_strides(view.dims));
}

bool is_dense(const View& view) {
  std::vector<int> order;
  for (size_t axis = 0; axis < view.dims.size(); ++axis) {
    if (view.dims[axis] != 1) order.push_back(static_cast<int>(axis));
  }
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return view.strides[a] < view.strides[b]; });
  int64_t expected = 1;
  for (int axis : order) {
    if (view.strides[axis] != expected) return false;
    expected *= view.dims[axis];
  }
  return true;
}

dnnl::memory::data_type dnnl_type(ElementType type) {
  using T = dnnl::memory::data_type;
  // f16 needs an ISA that few CPUs have.
  static constexpr T kTypes[] = {T::f32, T::bf16, T::undef, T::u8, T::s8, T::s32};
  return type <= ElementType::kI32 ? kTypes[static_cast<int>(type)] : T::undef;
}

dnnl::memory::desc descriptor(const View& view) {
  return descriptor(view, view.dims, view.strides);
}

dnnl::memory::desc channels_last_descriptor(const View& view) {
  return descriptor(view, view.dims, channels_last_strides(view.dims));
}

dnnl::memory::desc vector_descriptor(int64_t count, dnnl::memory::data_type type) {
  return {{count}, type, dnnl::memory::dims{1}};
}

dnnl::memory::desc descriptor(const View& view, const Dims& dims, const Dims& strides) {
  // oneDNN compares strides of axes with extent 1 too when it looks for a known layout, so they get
  // the ones of the layout that the others say; where both fit, what the caller wrote decides.
  Dims last = channels_last_strides(dims);
  bool is_last = same_strides(dims, strides, last);
  if (!dims.empty() &&
      (strides == last || (is_last && !same_strides(dims, strides, row_major_strides(dims))))) {
    return {dims, dnnl_type(view.type), last};
  }
  return matrix_descriptor(view, dims, strides);
}

dnnl::memory::desc matrix_descriptor(const View& view, const Dims& dims, const Dims& strides) {
  if (dims.empty()) return {{1}, dnnl_type(view.type), dnnl::memory::dims{1}};
  Dims clean = strides;
  int64_t inner = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] == 1) clean[axis] = inner;
    inner = std::max(inner, clean[axis] * dims[axis]);
  }
  return {dims, dnnl_type(view.type), clean};
}

bool interleaves(const View& view) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
  for (size_t i = 0; i < view.dims.size(); ++i)
    if (view.dims[i] > 1 && view.strides[i] != 0) axes.emplace_back(view.strides[i], view.dims[i]);
  std::sort(axes.begin(), axes.end());
  for (size_t i = 1; i < axes.size(); ++i)
    if (axes[i].first < axes[i - 1].first * axes[i - 1].second) return true;
  return false;
}

}  // namespace tenon::onednn
