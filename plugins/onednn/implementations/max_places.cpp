// SPDX-License-Identifier: Apache-2.0
// MaxPool with the indices of its maxima: the first of equal ones, and NaN before all numbers.
#include "max_places.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "conv_geometry.hpp"
#include "dense.hpp"
#include "window_axes.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kColumns = 64;  // of a row of results, which are found at once

using Sizes = WindowAxes::Sizes;
struct MaxPlaces : WindowAxes {
  int64_t planes = 1;  // images times channels
  size_t n_axes = kAxes;
  bool is_by_column = false;  // indices count the first spatial axis fastest

  int64_t place(size_t axis, int64_t at, int64_t tap) const {
    return at * stride[axis] - pad[axis] + tap * step[axis];
  }
};

struct Best {
  std::array<float, kColumns> number;
  std::array<int32_t, kColumns> at;  // in the plane; -1: none yet
};

// One tap of n results from column `first` on; row: that of the pixels, the first of which is
// number row_at of the plane.
void take_tap(const MaxPlaces& m,
              int64_t first,
              int64_t n,
              int64_t tap,
              const float* row,
              int64_t row_at,
              Best* best) {
  const int64_t stride = m.stride[2], offset = m.place(2, first, tap);
  const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t end = offset >= m.in[2] ? 0 : (m.in[2] - 1 - offset) / stride + 1;
  for (int64_t i = begin; i < std::min(n, end); ++i) {
    const auto k = static_cast<size_t>(i);
    const float number = row[offset + i * stride], most = best->number[k];
    const bool is_new_nan = std::isnan(number) && !std::isnan(most);
    const bool is_better = number > most || best->at[k] < 0 || is_new_nan;
    best->number[k] = is_better ? number : most;
    best->at[k] = is_better ? static_cast<int32_t>(row_at + offset + i * stride) : best->at[k];
  }
}

int64_t by_column(const MaxPlaces& m, int64_t at) {
  const int64_t d = at / (m.in[1] * m.in[2]), h = at / m.in[2] % m.in[1], w = at % m.in[2];
  if (m.n_axes == 3) return d + m.in[0] * (h + m.in[1] * w);
  return m.n_axes == 2 ? h + m.in[1] * w : w;
}

// n results from (d, h, first) on, of one plane.
void find_best(const MaxPlaces& m, const float* plane, Sizes from, int64_t n, Best* best) {
  best->number.fill(-HUGE_VALF);
  best->at.fill(-1);
  for (int64_t i = 0; i < m.kernel[0]; ++i) {
    const int64_t d = m.place(0, from[0], i);
    if (d < 0 || d >= m.in[0]) continue;
    for (int64_t j = 0; j < m.kernel[1]; ++j) {
      const int64_t h = m.place(1, from[1], j);
      if (h < 0 || h >= m.in[1]) continue;
      const int64_t row_at = (d * m.in[1] + h) * m.in[2];
      for (int64_t k = 0; k < m.kernel[2]; ++k)
        take_tap(m, from[2], n, k, plane + row_at, row_at, best);
    }
  }
}

void run_plane(const MaxPlaces& m, int64_t plane, void* const* pointers) {
  const float* src = static_cast<const float*>(pointers[0]) + plane * m.in_count();
  float* numbers = static_cast<float*>(pointers[1]) + plane * m.out_count();
  int64_t* places = static_cast<int64_t*>(pointers[2]) + plane * m.out_count();
  const int64_t first_place = plane * m.in_count();
  Best best;
  for (int64_t row = 0; row < m.out[0] * m.out[1]; ++row) {
    for (int64_t first = 0; first < m.out[2]; first += kColumns) {
      const int64_t n = std::min(kColumns, m.out[2] - first), to = row * m.out[2] + first;
      find_best(m, src, {row / m.out[1], row % m.out[1], first}, n, &best);
      std::copy_n(best.number.begin(), n, numbers + to);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = best.at[static_cast<size_t>(i)];
        places[to + i] = first_place + (m.is_by_column ? by_column(m, at) : at);
      }
    }
  }
}

}  // namespace

void lower_max_places(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& in = graph.values[node.inputs[0]].dims;
  const Dims& out = graph.values[node.outputs[1]].dims;
  const Window window = find_window(node, in, out, node.integers("kernel_shape"));
  const MaxPlaces m{
      {window, in, out}, in[0] * in[1], in.size() - 2, node.integer("storage_order", 0) != 0};
  lower_dense(lowering, index, "tenon:max_places",
              [m](const kernels::Context& context, void* const* pointers) -> const char* {
                kernels::parallel_for(context.parallel, m.planes,
                                      kernels::grain_rows(m.out_count() * m.n_taps() * 8),
                                      [&](int64_t lo, int64_t hi) {
                                        for (int64_t plane = lo; plane < hi; ++plane)
                                          run_plane(m, plane, pointers);
                                      });
                return nullptr;
              });
}

}  // namespace tenon::onednn
