// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression: the boxes with the highest scores that overlap none that was kept before.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status nms_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, TN_I64, {Dim(), 3});
}

struct Box {
  double top, left, bottom, right;
  double area = (bottom - top) * (right - left);
};

Box box_at(const Call& call, int64_t i, bool by_centre) {
  const float* at = call.data<float>(0) + i * 4;
  const std::array<double, 4> v{at[0], at[1], at[2], at[3]};
  if (by_centre)  // x, y, width, height
    return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

double overlap(const Box& a, const Box& b) {
  double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  double both = height * width;
  return both / (a.area + b.area - both);
}

Status nms_ref(const Call& call) {
  std::span<const int64_t> boxes = call.shape(0), scores = call.shape(1);
  if (boxes.size() != 3 || boxes[2] != 4 || scores.size() != 3 || scores[0] != boxes[0] ||
      scores[2] != boxes[1])
    return invalid("expected boxes [n, b, 4] and scores [n, c, b]");
  if (call.dtype(0) != TN_F32 || call.dtype(1) != TN_F32)
    return invalid("boxes, scores: expected f32");
  auto number = [&](uint64_t i, double fallback) {
    return call.has(i) ? load_number(call.data<char>(i), call.dtype(i), 0) : fallback;
  };
  double most = number(2, 0), iou = number(3, 0), least = number(4, -HUGE_VAL);
  int64_t n_boxes = boxes[1];
  const bool by_centre = call.node().attr_int("center_point_box") != 0;
  std::vector<int64_t> out;
  for (int64_t list = 0; list < scores[0] * scores[1]; ++list) {
    TN_CHECK(call.cancel().check());
    // A heap with the highest on top, then by place: few of them are looked at.
    std::vector<std::pair<float, int64_t>> order;
    const float* of_boxes = call.data<float>(1) + list * n_boxes;
    for (int64_t i = 0; i < n_boxes; ++i)
      if (double{of_boxes[i]} > least) order.emplace_back(-of_boxes[i], i);
    std::ranges::make_heap(order, std::greater());
    int64_t image = list / scores[1];
    std::vector<Box> kept;
    while (!order.empty() && static_cast<double>(kept.size()) < most) {
      std::ranges::pop_heap(order, std::greater());
      const int64_t i = order.back().second;
      order.pop_back();
      Box box = box_at(call, image * n_boxes + i, by_centre);
      if (std::any_of(kept.begin(), kept.end(),
                      [&](const Box& other) { return overlap(box, other) > iou; }))
        continue;
      kept.push_back(box);
      out.insert(out.end(), {image, list % scores[1], i});
    }
  }
  TN_TRY(result, call.out(0, TN_I64, {static_cast<int64_t>(out.size()) / 3, 3}));
  std::copy(out.begin(), out.end(), data_of<int64_t>(result));
  return {};
}

Result<Node> nms_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t n = random.integer(1, 2), boxes = random.integer(1, 6);
  TN_TRY(at, random.input(TN_F32, {n, boxes, 4}));
  TN_TRY(scores, random.input(TN_F32, {n, random.integer(1, 2), boxes}));
  TN_TRY(most, edit.ints({random.integer(1, 4)}));
  TN_TRY(iou, edit.constant<float>(TN_F32, {1}, std::vector<float>{0.3f}));
  return edit.add({.type = "NonMaxSuppression",
                   .inputs = {at, scores, most, iou},
                   .attrs = {{"center_point_box", random.integer(0, 1)}}});
}

constexpr tn_op kNms =
    op_row({.type = "NonMaxSuppression",
            .since = 11,
            .traits = TN_OP_DATA_SHAPE | TN_OP_MIXES_BATCH,
            .attributes = R"([{"name": "center_point_box", "type": "int", "default": 0}])",
            .shape = shape<nms_shape,
                           "boxes: f32[n k 4], scores: f32[n c k], max_boxes: int[one]?, "
                           "iou_threshold: float[one]?, score_threshold: float[one]?">,
            .cost = cost<move_cost>,
            .ref = ref<nms_ref>,
            .sample = sample<nms_sample>,
            .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(non_max_suppression, &kNms)

}  // namespace tenon::ops
