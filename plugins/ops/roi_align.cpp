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

// The boxes of a call, in pixels.
struct Boxes {
  const Call& call;
  const RoiRules& rules;
  int64_t count;

  double edge(int64_t roi, int64_t k) const {
    return load_number(call.data<char>(1), call.dtype(1), roi * 4 + k) * rules.scale - rules.offset;
  }
  int64_t bins(bool along_rows) const { return along_rows ? rules.rows : rules.columns; }
};

Status check_boxes(const Boxes& boxes) {
  constexpr double kFarthest = 1e6;  // pixels
  for (int64_t i = 0; i < 4 * boxes.count; ++i)
    if (!(std::fabs(boxes.edge(i / 4, i % 4)) <= kFarthest))
      return invalid(cat("rois: expected finite edges within ", int64_t(kFarthest), " pixels"));
  for (int64_t i = 0; i < 2 * boxes.count && boxes.rules.sampling <= 0; ++i) {
    double size = boxes.edge(i / 2, 2 + i % 2) - boxes.edge(i / 2, i % 2);
    auto bins = static_cast<double>(boxes.bins(i % 2 != 0));
    if (size > bins * static_cast<double>(kMostOfBox))
      return invalid(cat("rois: expected at most ", kMostOfBox, " pixels a bin along an axis, got ",
                         size / bins, "; set sampling_ratio"));
  }
  return {};
}

// The points along one axis of a box at which its bins are sampled.
struct Samples {
  double begin, step;  // step: the size of a bin
  int64_t per_bin;

  static Samples of(double begin, double end, int64_t bins, const RoiRules& rules) {
    double size = rules.half_pixel ? end - begin : std::max(end - begin, 1.0);
    double step = size / static_cast<double>(bins);
    int64_t pixels = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(step)));
    return {begin, step, rules.sampling > 0 ? rules.sampling : pixels};
  }
  double at(int64_t bin, int64_t i) const {
    double within = (static_cast<double>(i) + 0.5) / static_cast<double>(per_bin);
    return begin + step * (static_cast<double>(bin) + within);
  }
};

// One channel of one box, `image` of size [height, width]: its bins one after the other.
template <class Pixel, class Store>
void pool_box(const Boxes& boxes,
              int64_t roi,
              int64_t height,
              int64_t width,
              const Pixel& pixel,
              const Store& store) {
  const RoiRules& r = boxes.rules;
  Samples y = Samples::of(boxes.edge(roi, 1), boxes.edge(roi, 3), r.rows, r);
  Samples x = Samples::of(boxes.edge(roi, 0), boxes.edge(roi, 2), r.columns, r);
  int64_t points = y.per_bin * x.per_bin;
  for (int64_t bin = 0; bin < r.rows * r.columns; ++bin) {
    double sum = 0, best = 0;
    for (int64_t p = 0; p < points; ++p) {
      double value =
          bilinear(y.at(bin / r.columns, p / x.per_bin), x.at(bin % r.columns, p % x.per_bin),
                   height, width, r.largest, pixel);
      sum += value;
      best = p == 0 ? value : std::max(best, value);
    }
    store(bin, r.largest ? best : sum / static_cast<double>(std::max<int64_t>(points, 1)));
  }
}

Status roi_ref(const Call& call) {
  std::span<const int64_t> x = call.shape(0), rois = call.shape(1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4 || element_count(call.in(2)) != rois[0])
    return invalid("expected x [n, c, h, w], rois [r, 4] and batch_indices [r]");
  TN_TRY(rules, roi_rules(call.node()));
  std::vector<int64_t> images = read_ints(call.in(2));
  for (int64_t image : images)
    if (image < 0 || image >= x[0])
      return {TN_OUT_OF_RANGE, cat("batch_indices: expected 0..", x[0] - 1, ", got ", image)};
  Boxes boxes{call, rules, rois[0]};
  int64_t bins = rules.rows * rules.columns;
  TN_TRY(out, call.out(0, call.dtype(0), {rois[0], x[1], rules.rows, rules.columns}));
  TN_CHECK(check_boxes(boxes));
  if (rois[0] * x[1] > 0 && x[2] * x[3] == 0)
    return invalid(cat("x: expected images of at least one pixel, got ", x[2], "x", x[3]));
  auto body = [&, &y = out](uint64_t begin, uint64_t end) {
    for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
      int64_t roi = i / x[1];
      int64_t plane = (images[static_cast<size_t>(roi)] * x[1] + i % x[1]) * x[2] * x[3];
      auto pixel = [&](int64_t row, int64_t column) {
        return load_number(call.data<char>(0), call.dtype(0), plane + row * x[3] + column);
      };
      auto store = [&](int64_t bin, double value) {
        store_number(data_of<char>(y), call.dtype(0), i * bins + bin, value);
      };
      pool_box(boxes, roi, x[2], x[3], pixel, store);
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
