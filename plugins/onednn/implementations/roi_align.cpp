// SPDX-License-Identifier: Apache-2.0
// RoiAlign: each bin of a box is the mean, or the largest, of points between the pixels. Where the
// points of a bin lie is found once for several channels.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "dense.hpp"
#include "kernels/scratch.h"

namespace tenon::onednn {
namespace {

// What a box may lead to where a bin has as many points along an axis as it has pixels.
constexpr int64_t kMostOfBox = 4096;
constexpr int64_t kChannels = 16;  // of a piece of work

struct RoiAlign {
  int64_t images = 1;
  int64_t channels = 1;
  std::array<int64_t, 2> sizes{};  // height and width
  std::array<int64_t, 2> bins{};
  int64_t rois = 0;
  int64_t sampling = 0;  // points of a bin along an axis; 0: one for each pixel
  double scale = 1;
  bool is_half_pixel = true;
  bool takes_largest = false;
  ElementType index_type = ElementType::kI64;

  double edge(const float* rois_data, int64_t roi, int64_t k) const {
    return double{rois_data[roi * 4 + k]} * scale - (is_half_pixel ? 0.5 : 0.0);
  }
};

const char* check(const RoiAlign& r, void* const* pointers) {
  thread_local std::array<char, 128> why;
  const float* rois = static_cast<const float*>(pointers[1]);
  for (int64_t i = 0; i < r.rois; ++i) {
    const int64_t image = integer_at(pointers[2], r.index_type, i);
    if (image >= 0 && image < r.images) continue;
    std::snprintf(why.data(), why.size(), "batch_indices: expected 0..%lld, got %lld",
                  static_cast<long long>(r.images - 1), static_cast<long long>(image));
    return why.data();
  }
  constexpr double kFarthest = 1e6;  // pixels
  for (int64_t i = 0; i < 4 * r.rois; ++i)
    if (!(std::fabs(r.edge(rois, i / 4, i % 4)) <= kFarthest))
      return "rois: expected finite edges within 1000000 pixels";
  for (int64_t i = 0; i < 2 * r.rois && r.sampling <= 0; ++i) {
    const double size = r.edge(rois, i / 2, 2 + i % 2) - r.edge(rois, i / 2, i % 2);
    const auto bins = static_cast<double>(r.bins[i % 2 != 0 ? 0 : 1]);
    if (size <= bins * static_cast<double>(kMostOfBox)) continue;
    std::snprintf(why.data(), why.size(),
                  "rois: expected at most %lld pixels a bin along an axis, got %g; set "
                  "sampling_ratio",
                  static_cast<long long>(kMostOfBox), size / bins);
    return why.data();
  }
  return nullptr;
}

// Where a point lies along an axis: between two pixels, with their shares.
struct Point {
  int64_t first;
  int64_t next;
  float first_share;
  float next_share;
};

// One axis of a box.
struct BoxAxis {
  double begin = 0;
  double step = 1;  // the size of a bin
  int64_t per_bin = 0;
  int64_t size = 1;

  BoxAxis(const RoiAlign& r, const float* rois, int64_t roi, size_t axis) : size(r.sizes[axis]) {
    const int64_t k = axis == 0 ? 1 : 0;
    begin = r.edge(rois, roi, k);
    const double length = r.edge(rois, roi, k + 2) - begin;
    step = (r.is_half_pixel ? length : std::max(length, 1.0)) / static_cast<double>(r.bins[axis]);
    per_bin =
        r.sampling > 0 ? r.sampling : std::max(int64_t{0}, static_cast<int64_t>(std::ceil(step)));
  }
  // Those of a bin that are at most a pixel outside of the image; the others are 0. Returns how
  // many there are.
  int64_t points(int64_t bin, Point* out) const {
    int64_t n = 0;
    for (int64_t i = 0; i < per_bin; ++i) {
      const double within = (static_cast<double>(i) + 0.5) / static_cast<double>(per_bin);
      const double at = begin + step * (static_cast<double>(bin) + within);
      if (at < -1 || at > static_cast<double>(size)) continue;
      const double inside = std::max(at, 0.0);
      const int64_t first = std::min(static_cast<int64_t>(inside), size - 1);
      const bool is_last = first == size - 1;
      const double share = is_last ? 0 : inside - static_cast<double>(first);
      out[n++] = {first, is_last ? first : first + 1, static_cast<float>(1 - share),
                  static_cast<float>(share)};
    }
    return n;
  }
};

// The points of one bin.
struct Bin {
  const Point* rows;
  const Point* columns;
  int64_t n_rows;
  int64_t n_columns;
  int64_t count;  // with those outside
};

float mean_of(const Bin& bin, const float* pixels, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < bin.n_rows; ++i) {
    const Point& row = bin.rows[i];
    const float* above = pixels + row.first * width;
    const float* below = pixels + row.next * width;
    float of_row = 0;
    for (int64_t j = 0; j < bin.n_columns; ++j) {
      const Point& column = bin.columns[j];
      of_row +=
          row.first_share *
              (column.first_share * above[column.first] + column.next_share * above[column.next]) +
          row.next_share *
              (column.first_share * below[column.first] + column.next_share * below[column.next]);
    }
    sum += double{of_row};
  }
  return static_cast<float>(sum / static_cast<double>(std::max<int64_t>(bin.count, 1)));
}

// The largest of the four weighted pixels around each point.
float largest_of(const Bin& bin, const float* pixels, int64_t width) {
  const bool has_outside = bin.n_rows * bin.n_columns < bin.count || bin.count == 0;
  float best = has_outside ? 0.0F : -HUGE_VALF;
  for (int64_t i = 0; i < bin.n_rows; ++i) {
    const Point& row = bin.rows[i];
    const float* above = pixels + row.first * width;
    const float* below = pixels + row.next * width;
    for (int64_t j = 0; j < bin.n_columns; ++j) {
      const Point& column = bin.columns[j];
      best = std::max({best, row.first_share * column.first_share * above[column.first],
                       row.first_share * column.next_share * above[column.next],
                       row.next_share * column.first_share * below[column.first],
                       row.next_share * column.next_share * below[column.next]});
    }
  }
  return best;
}

// Up to kChannels channels of one box.
void run_channels(
    const RoiAlign& r, int64_t roi, int64_t begin, int64_t end, void* const* pointers) {
  const float* rois = static_cast<const float*>(pointers[1]);
  const BoxAxis down(r, rois, roi, 0), across(r, rois, roi, 1);
  auto* rows = reinterpret_cast<Point*>(kernels::scratch_of_thread(
      (down.per_bin + across.per_bin) * static_cast<int64_t>(sizeof(Point))));
  Point* columns = rows + down.per_bin;
  const int64_t pixels = r.sizes[0] * r.sizes[1], n_bins = r.bins[0] * r.bins[1];
  const int64_t image = integer_at(pointers[2], r.index_type, roi);
  const float* src = static_cast<const float*>(pointers[0]) + image * r.channels * pixels;
  float* dst = static_cast<float*>(pointers[3]) + roi * r.channels * n_bins;
  for (int64_t i = 0; i < n_bins; ++i) {
    const int64_t n_rows = down.points(i / r.bins[1], rows);
    const int64_t n_columns = across.points(i % r.bins[1], columns);
    const Bin bin{rows, columns, n_rows, n_columns, down.per_bin * across.per_bin};
    for (int64_t c = begin; c < end; ++c)
      dst[c * n_bins + i] = r.takes_largest ? largest_of(bin, src + c * pixels, r.sizes[1])
                                            : mean_of(bin, src + c * pixels, r.sizes[1]);
  }
}

const char* run(const RoiAlign& r, const kernels::Context& context, void* const* pointers) {
  if (const char* why = check(r, pointers)) return why;
  const int64_t n_pieces = (r.channels + kChannels - 1) / kChannels;
  kernels::parallel_for(context.parallel, r.rois * n_pieces,
                        kernels::grain_rows(kChannels * r.bins[0] * r.bins[1] * 64),
                        [&](int64_t lo, int64_t hi) {
                          for (int64_t i = lo; i < hi; ++i) {
                            const int64_t begin = i % n_pieces * kChannels;
                            const int64_t end = std::min(begin + kChannels, r.channels);
                            run_channels(r, i / n_pieces, begin, end, pointers);
                          }
                        });
  return nullptr;
}

}  // namespace

std::string refuse_roi_align(const Graph& graph, const Node& node) {
  const bool is_f32 = graph.values[node.inputs[0]].type == ElementType::kF32 &&
                      graph.values[node.inputs[1]].type == ElementType::kF32;
  if (!is_f32) return "only f32";
  return is_integer_parameter(graph, node, 2) ? "" : "only i32 and i64 for the images";
}

void lower_roi_align(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& src = graph.values[node.inputs[0]].dims;
  const RoiAlign r{
      .images = src[0],
      .channels = src[1],
      .sizes = {src[2], src[3]},
      .bins = {node.integer("output_height", 1), node.integer("output_width", 1)},
      .rois = graph.values[node.inputs[1]].dims[0],
      .sampling = node.integer("sampling_ratio", 0),
      .scale = node.real("spatial_scale", 1),
      .is_half_pixel = node.text("coordinate_transformation_mode", "half_pixel") == "half_pixel",
      .takes_largest = node.text("mode", "avg") == "max",
      .index_type = graph.values[node.inputs[2]].type};
  lower_dense(lowering, index, "tenon:roi_align",
              [r](const kernels::Context& context, void* const* pointers) {
                return run(r, context, pointers);
              });
}

}  // namespace tenon::onednn
