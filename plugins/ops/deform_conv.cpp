// SPDX-License-Identifier: Apache-2.0
// DeformConv (Dai et al. 2017; masks by Zhu et al. 2019): a convolution whose taps are moved by
// offsets that are an input, and read between pixels.
#include "deform_conv.hpp"

#include <algorithm>
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using namespace deform;  // NOLINT(google-build-using-namespace): the same operator

Status deform_shape(EditView edit, Node node) {
  Type x = node.input(kX).type(), w = node.input(kW).type(), offset = node.input(kOffset).type();
  int64_t group = node.attr_int("group", 1), offset_group = node.attr_int("offset_group", 1);
  int64_t channels = x.ranked && x.rank() == 4 ? x.dims[1] : TN_DIM_UNKNOWN;
  if (group < 1 || offset_group < 1 || (channels >= 0 && channels % offset_group != 0))
    return invalid(cat("offset_group: expected a divisor of ", channels, ", got ", offset_group));
  Dims out(4);
  if (x.ranked && x.rank() == 4) out[0] = dims_of(x)[0];
  if (w.ranked && w.rank() == 4) out[1] = dims_of(w)[0];
  if (offset.ranked && offset.rank() == 4) out[2] = dims_of(offset)[2], out[3] = dims_of(offset)[3];
  return set_output(edit, node, 0, x.dtype, out);
}

struct Deform {
  Window window;
  int64_t groups, offset_groups, in_channels, out_channels;
  int64_t rows, columns, taps;
};

Result<Deform> deform_of(const Call& call) {
  std::span<const int64_t> x = call.shape(kX), w = call.shape(kW), offset = call.shape(kOffset);
  if (x.size() != 4 || w.size() != 4 || offset.size() != 4)
    return invalid("expected x, w and offset of rank 4");
  TN_TRY(window, window_of(call.node(), x.subspan(2), w.subspan(2)));
  std::vector<int64_t> out = window.out_shape();
  Deform d{window,
           call.node().attr_int("group", 1),
           call.node().attr_int("offset_group", 1),
           x[1],
           w[0],
           out[0],
           out[1],
           w[2] * w[3]};
  if (d.groups < 1 || d.offset_groups < 1 || w[1] * d.groups != x[1] || w[0] % d.groups != 0 ||
      x[1] % d.offset_groups != 0)
    return invalid("expected channels that group and offset_group divide");
  std::vector<int64_t> moved{x[0], 2 * d.offset_groups * d.taps, d.rows, d.columns}, masked = moved;
  masked[1] /= 2;
  if (to_vector(offset) != moved)
    return invalid(
        cat("offset: expected [", x[0], ", ", moved[1], ", ", d.rows, ", ", d.columns, "]"));
  if (call.has(kMask) && to_vector(call.shape(kMask)) != masked)
    return invalid(
        cat("mask: expected [", x[0], ", ", masked[1], ", ", d.rows, ", ", d.columns, "]"));
  if (call.has(kB) && element_count(call.in(kB)) != w[0])
    return invalid(cat("b: expected ", w[0], " numbers, got ", element_count(call.in(kB))));
  return d;
}

double number(const Call& call, uint64_t i, int64_t at) {
  return load_number(call.data<char>(i), call.dtype(i), at);
}

// Between the four pixels around; outside of the image everything is 0.
double between(const Call& call, int64_t plane, int64_t height, int64_t width, double y, double x) {
  auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
  double down = y - static_cast<double>(top), across = x - static_cast<double>(left), sum = 0;
  for (int64_t i = 0; i < 4; ++i) {
    int64_t row = top + i / 2, column = left + i % 2;
    double weight = (i / 2 ? down : 1 - down) * (i % 2 ? across : 1 - across);
    if (weight != 0 && row >= 0 && row < height && column >= 0 && column < width)
      sum += weight * number(call, kX, (plane * height + row) * width + column);
  }
  return sum;
}

Status deform_ref(const Call& call) {
  TN_TRY(deform, deform_of(call));
  const Deform& d = deform;
  std::span<const int64_t> x = call.shape(kX), w = call.shape(kW);
  TN_TRY(out, call.out(0, call.dtype(kX), {x[0], d.out_channels, d.rows, d.columns}));
  const DLTensor& y = out;
  int64_t points = d.rows * d.columns, per_offset = d.in_channels / d.offset_groups;
  size_t first = kMaxSpatial - 2;  // the window's axes lie at the end of three
  auto body = [&](uint64_t begin, uint64_t end) {
    std::vector<double> columns(static_cast<size_t>(d.in_channels * d.taps));
    for (auto p = static_cast<int64_t>(begin); p < static_cast<int64_t>(end); ++p) {
      int64_t n = p / points, row = p % points / d.columns, column = p % d.columns;
      for (int64_t c = 0; c < d.in_channels; ++c) {
        for (int64_t k = 0; k < d.taps; ++k) {
          int64_t tap = (n * d.offset_groups + c / per_offset) * d.taps + k;
          auto place = [&](size_t axis, int64_t at, int64_t index, int64_t which) {
            return static_cast<double>(d.window.position(first + axis, at, index)) +
                   number(call, kOffset, (tap * 2 + which) * points + p % points);
          };
          double value = between(call, n * d.in_channels + c, x[2], x[3],
                                 place(0, row, k / w[3], 0), place(1, column, k % w[3], 1));
          if (call.has(kMask)) value *= number(call, kMask, tap * points + p % points);
          columns[static_cast<size_t>(c * d.taps + k)] = value;
        }
      }
      for (int64_t o = 0; o < d.out_channels; ++o) {
        int64_t group = o / (d.out_channels / d.groups), run = w[1] * d.taps;
        double sum = call.has(kB) ? number(call, kB, o) : 0;
        for (int64_t i = 0; i < run; ++i)
          sum += number(call, kW, o * run + i) * columns[static_cast<size_t>(group * run + i)];
        store_number(data_of<char>(y), call.dtype(kX),
                     (n * d.out_channels + o) * points + p % points, sum);
      }
    }
  };
  parallel_for(call.ctx(), static_cast<uint64_t>(x[0] * points), 4, body);
  return {};
}

Result<Node> deform_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t groups = random.integer(1, 2), offsets = random.integer(1, 2), n = random.integer(1, 2);
  int64_t rows = random.integer(1, 3), columns = random.integer(1, 3);
  TN_TRY(x, random.input(TN_F32, {n, 2 * groups, rows + 1, columns + 1}));
  TN_TRY(w, random.input(TN_F32, {2 * groups, 2, 2, 2}));
  TN_TRY(offset, random.input(TN_F32, {n, 8 * offsets, rows, columns}));
  TN_TRY(bias, random.input(TN_F32, {2 * groups}));
  std::vector<Value> inputs{x, w, offset, bias};
  if (random.coin()) {
    TN_TRY(mask, random.input(TN_F32, {n, 4 * offsets, rows, columns}));
    inputs.push_back(mask);
  }
  return edit.add({.type = "DeformConv",
                   .inputs = inputs,
                   .attrs = {{"group", groups}, {"offset_group", offsets}}});
}

OpCost deform_cost(Node node) {
  Type w = node.input(kW).type();
  double taps =
      w.is_static() && w.rank() == 4 ? static_cast<double>(w.dims[1] * w.dims[2] * w.dims[3]) : 0;
  return {2 * taps * output_elements(node), node_bytes(node)};
}

constexpr tn_op kDeformConv = op_row(
    {.type = "DeformConv",
     .since = 22,
     .attributes = R"([{"name": "dilations", "type": "ints"},
                                {"name": "group", "type": "int", "default": 1},
                                {"name": "kernel_shape", "type": "ints"},
                                {"name": "offset_group", "type": "int", "default": 1},
                                {"name": "pads", "type": "ints"},
                                {"name": "strides", "type": "ints"}])",
     .shape = shape<deform_shape,
                    "x: T[n (g c) s..], w: T[(g o) c s'..], offset: T[n _ s'..], bias: T[(g o)]?, "
                    "mask: T[n _ s'..]? ; g = group, T = float">,
     .decompose = decompose<deform::decomposed>,
     .cost = cost<deform_cost>,
     .ref = ref<deform_ref>,
     .sample = sample<deform_sample>});

}  // namespace

TENON_OPS(deform_conv, &kDeformConv)

}  // namespace tenon::ops
