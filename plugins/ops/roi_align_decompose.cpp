// SPDX-License-Identifier: Apache-2.0
// RoiAlign from smaller operators, for its gradients (by the boxes too) and vmap: where all sizes
// are known, and the samples of a bin are counted by sampling_ratio or by boxes that are constants.
#include <algorithm>
#include <cmath>
#include <limits>

#include "corners.hpp"
#include "numbers.hpp"
#include "roi_align.hpp"

namespace tenon::ops {
namespace {

struct Geometry {
  RoiRules rules;
  std::vector<int64_t> x;
  int64_t rois, samples_down, samples_across;  // the most that a bin has
  uint32_t dtype;                              // that it is computed in
};

// The most samples that a bin of any of these boxes has along an axis.
int64_t most_samples(const RoiRules& r, const DLTensor& boxes, int64_t axis, int64_t bins) {
  double most = 0;
  for (int64_t i = 0; i < shape_of(boxes)[0]; ++i) {
    auto edge = [&](int64_t k) {
      return load_number(data_of<char>(boxes), dtype_of(boxes), i * 4 + k) * r.scale;
    };
    double size = edge(axis + 2) - edge(axis);
    if (!r.half_pixel) size = std::max(size, 1.0);
    most = std::max(most, std::ceil(size / static_cast<double>(bins)));
  }
  return static_cast<int64_t>(most);
}

Result<Geometry> geometry_of(Node node) {
  TN_TRY(rules, roi_rules(node));
  Type x = node.input(0).type(), boxes = node.input(1).type();
  if (!x.is_static() || x.rank() != 4 || !boxes.is_static() || boxes.rank() != 2)
    return unsupported("RoiAlign: composite where all sizes are known");
  Geometry out{rules,          x.dims,         boxes.dims[0],
               rules.sampling, rules.sampling, x.dtype == TN_F64 ? TN_F64 : TN_F32};
  constexpr int64_t kMostBins = int64_t{1} << 16;
  if (std::max(rules.rows, rules.columns) > kMostBins || rules.sampling > kMostAsked)
    return unsupported("RoiAlign: composite up to 65536 bins and 1024 samples along an axis");
  if (rules.sampling > 0) return out;
  if (!node.input(1).is_constant())
    return unsupported("RoiAlign: composite with sampling_ratio, or boxes that are constants");
  DLTensor known = node.input(1).constant().dl();
  out.samples_down = most_samples(rules, known, 1, rules.rows);
  out.samples_across = most_samples(rules, known, 0, rules.columns);
  if (out.samples_down < 1 || out.samples_across < 1 || out.samples_down > kMostAsked ||
      out.samples_across > kMostAsked)
    return unsupported("RoiAlign: composite where bins have 1 to 1024 samples along an axis");
  return out;
}

// One axis of all boxes; values are [rois, bins * samples].
class BoxAxis {
 public:
  BoxAxis(Builder& b, const Geometry& g, Value boxes, bool down) : b_(b), g_(g) {
    bins_ = down ? g.rules.rows : g.rules.columns;
    most_ = down ? g.samples_down : g.samples_across;
    size_ = g.x[down ? 2 : 3];
    auto edge = [&](int64_t k) {
      Value at = b.op("Gather", {boxes, b.ints({k})}, {{"axis", 1}});  // [rois, 1]
      return b.sub(b.mul(at, number(g.rules.scale)), number(g.rules.offset));
    };
    begin_ = edge(down ? 1 : 0);
    Value length = b.sub(edge(down ? 3 : 2), begin_);
    if (!g.rules.half_pixel) length = b.op("Max", {length, number(1)});
    step_ = b.div(length, number(static_cast<double>(bins_)));
    count_ = g.rules.sampling > 0 ? number(static_cast<double>(g.rules.sampling))
                                  : b.op("Ceil", {step_});
    bin_ = spread([&](int64_t i) { return i / most_; });
    sample_ = spread([&](int64_t i) { return i % most_; });
    Value half = b.div(b.add(sample_, number(0.5)), count_);
    place_ = b.add(begin_, b.mul(step_, b.add(bin_, half)));
  }
  // How many samples a bin of each box has: [rois, 1], or a scalar.
  Value count() const { return count_; }
  // 1 where the sample is one of its bin, 0 where another box has more.
  Value counted() const { return where(b_.op("Less", {sample_, count_})); }
  // 1 where the place is at most a pixel outside of the image.
  Value inside() const {
    Value low = b_.op("GreaterOrEqual", {place_, number(-1)});
    Value high = b_.op("LessOrEqual", {place_, number(static_cast<double>(size_))});
    return where(b_.op("And", {low, high}));
  }
  std::vector<Line> lines() const {
    Value none = number(0), last = number(static_cast<double>(size_ - 1));
    Value place = b_.op("Max", {place_, none});
    Value first = b_.op("Min", {b_.op("Floor", {place}), last});
    Value next = b_.op("Min", {b_.add(first, number(1)), last});
    Value rest = b_.op("Where", {b_.op("Equal", {first, last}), none, b_.sub(place, first)});
    return {{first, b_.sub(number(1), rest)}, {next, rest}};
  }
  int64_t width() const { return bins_ * most_; }

 private:
  Value number(double x) const { return b_.number(x, g_.dtype); }
  Value where(Value condition) const { return b_.op("Where", {condition, number(1), number(0)}); }
  template <class Of>
  Value spread(const Of& of) const {
    std::vector<double> values;
    for (int64_t i = 0; i < width(); ++i)
      values.push_back(static_cast<double>(of(i)));
    return b_.cast(b_.take(b_.edit().constant<double>(TN_F64, {1, width()}, values)), g_.dtype);
  }
  Builder& b_;
  const Geometry& g_;
  int64_t bins_, most_, size_;
  Value begin_, step_, count_, bin_, sample_, place_;
};

// The samples of all boxes as a grid, flat: [rois, rows * columns].
struct Grid {
  Builder& b;
  int64_t rois, rows, columns;

  // What depends on the row, or on the column, alone.
  Value spread(Value along, bool down) const {
    Value wide = b.op("Unsqueeze", {along, b.ints({down ? 2 : 1})});
    Value all = b.op("Expand", {wide, b.ints({rois, rows, columns})});
    return b.reshape(all, {rois, rows * columns});
  }
  std::vector<Line> spread(const std::vector<Line>& lines, bool down) const {
    std::vector<Line> out;
    for (const Line& line : lines)
      out.push_back({spread(line.at, down), spread(line.share, down)});
    return out;
  }
  // A product of both, for all channels: [rois, 1, rows * columns].
  Value product(Value of_rows, Value of_columns) const {
    return b.op("Unsqueeze",
                {b.mul(spread(of_rows, true), spread(of_columns, false)), b.ints({1})});
  }
};

}  // namespace

Result<std::vector<Value>> roi_align_decompose(EditView edit, Node node) {
  TN_TRY(g, geometry_of(node));
  Builder b(edit);
  Value boxes = b.cast(node.input(1), g.dtype);
  BoxAxis down(b, g, boxes, true), right(b, g, boxes, false);
  Grid grid{b, g.rois, down.width(), right.width()};
  int64_t channels = g.x[1];
  Value planes = b.op("Gather", {b.cast(node.input(0), g.dtype), node.input(2)}, {{"axis", 0}});
  planes = b.reshape(planes, {g.rois, channels, g.x[2] * g.x[3]});
  std::vector<Value> corners = weighted_corners(b, planes, grid.spread(down.lines(), true),
                                                grid.spread(right.lines(), false), g.x[3]);
  Value inside = grid.product(down.inside(), right.inside());
  Value counted = grid.product(down.counted(), right.counted());
  const RoiRules& r = g.rules;
  const std::vector<int64_t> bins{g.rois,         channels,  r.rows,
                                  g.samples_down, r.columns, g.samples_across};
  Value y;
  if (r.largest) {
    Value most = b.mul(b.op("Max", corners), inside);
    Value never = b.number(-std::numeric_limits<double>::infinity(), g.dtype);
    Value is_counted = b.op("Greater", {counted, b.number(0, g.dtype)});
    most = b.reshape(b.op("Where", {is_counted, most, never}), bins);
    y = b.op("ReduceMax", {most, b.ints({3, 5})}, {{"keepdims", 0}});
  } else {
    Value sum = b.add(b.add(corners[0], corners[1]), b.add(corners[2], corners[3]));
    sum = b.reshape(b.mul(sum, b.mul(inside, counted)), bins);
    sum = b.op("ReduceSum", {sum, b.ints({3, 5})}, {{"keepdims", 0}});
    Value count = b.op("Max", {b.mul(down.count(), right.count()), b.number(1, g.dtype)});
    if (r.sampling <= 0) count = b.reshape(count, {g.rois, 1, 1, 1});
    y = b.div(sum, count);
  }
  y = b.cast(y, node.input(0).dtype());
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

}  // namespace tenon::ops
