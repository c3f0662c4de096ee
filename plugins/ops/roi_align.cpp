// SPDX-License-Identifier: Apache-2.0
// RoiAlign (He et al. 2017, Mask R-CNN): boxes of an image, each read on a grid between the pixels.
#include "roi_align.hpp"

#include <algorithm>
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status roi_shape(EditView edit, Node node) {
  TN_TRY(rules, roi_rules(node));
  Type x = node.input(0).type(), rois = node.input(1).type();
  Dim channels = x.ranked && x.rank() == 4 ? dims_of(x)[1] : Dim();
  Dim count = rois.ranked && rois.rank() == 2 ? dims_of(rois)[0] : Dim();
  return set_output(edit, node, 0, x.dtype, {count, channels, rules.rows, rules.columns});
}

// Bilinear at (y, x); 0 more than one pixel outside. The four corners are joined by `best` when the
// bin takes their largest, weighted, and summed otherwise.
template <class Pixel>
double bilinear(double y, double x, int64_t height, int64_t width, bool best, const Pixel& pixel) {
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width))
    return 0;
  y = std::max(y, 0.0), x = std::max(x, 0.0);
  auto top = std::min(static_cast<int64_t>(y), height - 1);
  auto left = std::min(static_cast<int64_t>(x), width - 1);
  int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  double down = top == height - 1 ? 0 : y - static_cast<double>(top);
  double across = left == width - 1 ? 0 : x - static_cast<double>(left);
  double corners[] = {
      (1 - down) * (1 - across) * pixel(top, left), (1 - down) * across * pixel(top, right),
      down * (1 - across) * pixel(bottom, left), down * across * pixel(bottom, right)};
  if (best) return *std::max_element(corners, corners + 4);
  return corners[0] + corners[1] + corners[2] + corners[3];
}

Status roi_ref(const Call& call) {
  std::span<const int64_t> x = call.shape(0), rois = call.shape(1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4 || element_count(call.in(2)) != rois[0])
    return invalid("expected x [n, c, h, w], rois [r, 4] and batch_indices [r]");
  TN_TRY(rules, roi_rules(call.node()));
  const RoiRules& r = rules;
  std::vector<int64_t> images = read_ints(call.in(2));
  for (int64_t image : images)
    if (image < 0 || image >= x[0])
      return {TN_OUT_OF_RANGE, cat("batch_indices: expected 0..", x[0] - 1, ", got ", image)};
  TN_TRY(out, call.out(0, call.dtype(0), {rois[0], x[1], r.rows, r.columns}));
  auto edge = [&](int64_t roi, int64_t k) {
    return load_number(call.data<char>(1), call.dtype(1), roi * 4 + k) * r.scale - r.offset;
  };
  constexpr double kFarthest = 1e6;  // pixels
  for (int64_t i = 0; i < 4 * rois[0]; ++i)
    if (!(std::fabs(edge(i / 4, i % 4)) <= kFarthest))
      return invalid(cat("rois: expected finite edges within ", int64_t(kFarthest), " pixels"));
  for (int64_t i = 0; i < 2 * rois[0] && r.sampling <= 0; ++i) {
    double size = edge(i / 2, 2 + i % 2) - edge(i / 2, i % 2);
    auto bins = static_cast<double>(i % 2 ? r.rows : r.columns);
    if (size > bins * static_cast<double>(kMostOfBox))
      return invalid(cat("rois: expected at most ", kMostOfBox, " pixels a bin along an axis, got ",
                         size / bins, "; set sampling_ratio"));
  }
  int64_t bins = r.rows * r.columns;
  auto body = [&](uint64_t begin, uint64_t end) {
    for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
      int64_t roi = i / x[1],
              plane = (images[static_cast<size_t>(roi)] * x[1] + i % x[1]) * x[2] * x[3];
      double left = edge(roi, 0), top = edge(roi, 1);
      double width = edge(roi, 2) - left, height = edge(roi, 3) - top;
      if (!r.half_pixel) width = std::max(width, 1.0), height = std::max(height, 1.0);
      double step_y = height / static_cast<double>(r.rows),
             step_x = width / static_cast<double>(r.columns);
      int64_t down = r.sampling > 0 ? r.sampling : static_cast<int64_t>(std::ceil(step_y));
      int64_t across = r.sampling > 0 ? r.sampling : static_cast<int64_t>(std::ceil(step_x));
      auto pixel = [&](int64_t row, int64_t column) {
        return load_number(call.data<char>(0), call.dtype(0), plane + row * x[3] + column);
      };
      for (int64_t bin = 0; bin < bins; ++bin) {
        double sum = 0, best = 0;
        for (int64_t p = 0; p < down * across; ++p) {
          double y =
              top + step_y * (static_cast<double>(bin / r.columns) +
                              (static_cast<double>(p / across) + 0.5) / static_cast<double>(down));
          double at = left + step_x * (static_cast<double>(bin % r.columns) +
                                       (static_cast<double>(p % across) + 0.5) /
                                           static_cast<double>(across));
          double value = bilinear(y, at, x[2], x[3], r.largest, pixel);
          sum += value;
          best = p == 0 ? value : std::max(best, value);
        }
        double mean = sum / static_cast<double>(std::max<int64_t>(down * across, 1));
        store_number(data_of<char>(out), call.dtype(0), i * bins + bin, r.largest ? best : mean);
      }
    }
  };
  parallel_for(call.ctx(), static_cast<uint64_t>(rois[0] * x[1]), 1, body);
  return {};
}

Result<Node> roi_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t n = random.integer(1, 2), rois = random.integer(1, 3);
  TN_TRY(x, random.input(TN_F32, {n, random.integer(1, 2), 5, random.integer(3, 6)}));
  std::vector<float> at;
  std::vector<int64_t> images;
  for (int64_t i = 0; i < rois; ++i) {
    at.insert(at.end(), {0.5f, 0.25f, static_cast<float>(random.integer(1, 5)), 3});
    images.push_back(random.integer(0, n - 1));
  }
  TN_TRY(boxes, edit.constant<float>(TN_F32, {rois, 4}, at));
  TN_TRY(of, edit.ints(images));
  return edit.add({.type = "RoiAlign",
                   .inputs = {x, boxes, of},
                   .attrs = {{"mode", random.coin() ? "avg" : "max"},
                             {"output_height", 2},
                             {"output_width", random.integer(1, 3)},
                             {"sampling_ratio", random.integer(0, 2)}}});
}

OpCost roi_cost(Node node) {
  double points = static_cast<double>(std::max<int64_t>(node.attr_int("sampling_ratio"), 1));
  return {8 * points * points * output_elements(node), node_bytes(node)};
}

constexpr tn_op kRoiAlign = op_row(
    {.type = "RoiAlign",
     .since = 22,
     .attributes =
         R"([{"name": "coordinate_transformation_mode", "type": "string", "default": "half_pixel"},
                       {"name": "mode", "type": "string", "default": "avg"},
                       {"name": "output_height", "type": "int", "default": 1},
                       {"name": "output_width", "type": "int", "default": 1},
                       {"name": "sampling_ratio", "type": "int", "default": 0},
                       {"name": "spatial_scale", "type": "float", "default": 1.0}])",
     .shape = shape<roi_shape, "x: T[n c h w], rois: T[k 4], batch: int[k] ; T = float">,
     .decompose = decompose<roi_align_decompose>,
     .cost = cost<roi_cost>,
     .ref = ref<roi_ref>,
     .sample = sample<roi_sample>});

}  // namespace

TENON_OPS(roi_align, &kRoiAlign)

}  // namespace tenon::ops
