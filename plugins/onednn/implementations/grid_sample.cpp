// SPDX-License-Identifier: Apache-2.0
// GridSample: each point of a grid reads the pixels around its place, of all channels. The pixels
// and their weights are found once for a block of points, then each channel sums them.

#include <algorithm>
#include <array>
#include <cmath>

#include "dense.hpp"
#include "taps.hpp"

namespace tenon::onednn {
namespace {

enum class Mode : uint8_t { kNearest, kLinear, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

constexpr double kCubic = -0.75;  // the parameter of the cubic, as ONNX has it
constexpr size_t kMostAxes = 3;
constexpr int64_t kMostTaps = 64;  // a cubic over three axes
constexpr int64_t kPoints = 32;    // of a block

struct GridSample {
  Mode mode = Mode::kLinear;
  Padding padding = Padding::kZeros;
  bool has_corners = false;
  size_t n_axes = 2;
  std::array<int64_t, kMostAxes> sizes{};
  int64_t images = 1;
  int64_t channels = 1;
  int64_t pixels = 1;  // of a channel
  int64_t points = 1;  // of an image's grid
};

// Along one axis.
constexpr int64_t taps_along(Mode mode) {
  return mode == Mode::kNearest ? 1 : mode == Mode::kLinear ? 2 : 4;
}

// To even at halves; the sum with 1.5 * 2^52 has no digits behind the point.
double round_of(double x) {
  constexpr double kWhole = 0x1.8p52;
  return std::fabs(x) < 0x1p51 ? (x + kWhole) - kWhole : x;
}
int64_t floor_of(double x) {
  const auto whole = static_cast<int64_t>(x);
  return whole - (x < static_cast<double>(whole) ? 1 : 0);
}

// Between the centres of the corner pixels, or between their outer edges, there and back again.
double reflect(double x, bool has_corners, int64_t size) {
  const double low = has_corners ? 0 : -0.5;
  const auto range = static_cast<double>(has_corners ? size - 1 : size);
  if (x >= low && x <= low + range) return x;
  if (range <= 0) return 0;
  const double away = x < low ? low - x : x - low - range;
  const double turns = std::floor(away / range), rest = away - turns * range;
  const bool is_from_low = (std::fmod(turns, 2) == 0) == (x < low);
  return is_from_low ? low + rest : low + range - rest;
}

// In pixels, of a coordinate in -1..1. A cubic's weights follow from where it lies beyond the
// border, where only its pixels stop.
template <Mode mode>
double position(const GridSample& g, double n, int64_t size) {
  const auto length = static_cast<double>(size);
  double x = static_cast<double>(
      static_cast<float>(g.has_corners ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2));
  if (!std::isfinite(x)) x = -1;
  if (mode == Mode::kNearest) x = round_of(x);
  const double low = g.has_corners ? 0 : -0.5;
  const bool is_inside = x >= low && x <= low + (g.has_corners ? length - 1 : length);
  if (is_inside || g.padding == Padding::kZeros) return x;
  if (g.padding == Padding::kReflection) return reflect(x, g.has_corners, size);
  return mode == Mode::kCubic ? x : std::clamp(x, 0.0, length - 1);
}

// The pixel that stands for number i, or -1 for one that is 0.
int64_t pixel_of(const GridSample& g, int64_t i, int64_t size) {
  if (i >= 0 && i < size) return i;
  if (g.padding == Padding::kZeros) return -1;
  if (g.padding == Padding::kReflection)
    i = static_cast<int64_t>(reflect(static_cast<double>(i), g.has_corners, size));
  return std::clamp<int64_t>(i, 0, size - 1);
}

// Along one axis, or over several: pixels and their weights.
template <int64_t kCount, class Weight>
struct Taps {
  std::array<int64_t, kCount> at;
  std::array<Weight, kCount> weight;
};

template <Mode mode>
void find_axis_taps(const GridSample& g, double x, int64_t size, Taps<4, double>* taps) {
  x = std::clamp(x, -0x1p62, 0x1p62);  // far outside all the same
  const bool is_nearest = mode == Mode::kNearest;
  const int64_t first = is_nearest ? static_cast<int64_t>(round_of(x)) : floor_of(x);
  const double t = x - static_cast<double>(first);
  const int64_t begin = mode == Mode::kCubic ? -1 : 0;
  for (int64_t i = 0; i < taps_along(mode); ++i) {
    const auto k = static_cast<size_t>(i);
    const double away = t - static_cast<double>(begin + i);
    taps->at[k] = pixel_of(g, first + begin + i, size);
    taps->weight[k] = is_nearest             ? 1
                      : mode == Mode::kCubic ? cubic_weight(away, kCubic)
                                             : 1 - std::fabs(away);
  }
}

// Of a block of points, one point after the other.
struct PointTaps {
  std::array<int64_t, kPoints * kMostTaps> at;
  std::array<float, kPoints * kMostTaps> weight;
};

constexpr int64_t taps_over(Mode mode, size_t n_axes) {
  int64_t taps = 1;
  for (size_t d = 0; d < n_axes; ++d)
    taps *= taps_along(mode);
  return taps;
}

// All products of the axes' taps, the last axis fastest. Returns whether each is inside.
template <Mode mode, size_t n_axes>
bool find_taps(const GridSample& g, const float* place, int64_t* ats, float* weights) {
  constexpr int64_t kEach = taps_along(mode), kAll = taps_over(mode, n_axes);
  Taps<kAll, double> found;
  found.at[0] = 0;
  found.weight[0] = 1;
  int64_t n = 1;
  bool is_inside = true;
  for (size_t d = 0; d < n_axes; ++d) {
    Taps<4, double> axis;  // the grid names the last axis first
    const double x = position<mode>(g, double{place[n_axes - 1 - d]}, g.sizes[d]);
    find_axis_taps<mode>(g, x, g.sizes[d], &axis);
    for (int64_t i = n; i-- > 0;) {  // from the end, so that none is overwritten too early
      const int64_t at = found.at[static_cast<size_t>(i)];
      const double weight = found.weight[static_cast<size_t>(i)];
      for (int64_t k = 0; k < kEach; ++k) {
        const auto to = static_cast<size_t>(i * kEach + k), tap = static_cast<size_t>(k);
        const bool is_there = at >= 0 && axis.at[tap] >= 0;
        is_inside &= is_there;
        found.at[to] = is_there ? at * g.sizes[d] + axis.at[tap] : -1;
        found.weight[to] = weight * axis.weight[tap];
      }
    }
    n *= kEach;
  }
  for (size_t t = 0; t < kAll; ++t) {
    ats[t] = found.at[t];
    weights[t] = static_cast<float>(found.weight[t]);
  }
  return is_inside;
}

// One channel of n points.
template <int64_t kTaps, bool kInside>
void sum_taps(const PointTaps& taps, int64_t n, const float* src, float* dst) {
  for (int64_t p = 0; p < n; ++p) {
    float sum = 0;
    for (int64_t t = 0; t < kTaps; ++t) {
      const auto tap = static_cast<size_t>(p * kTaps + t);
      const int64_t at = taps.at[tap];
      if (kInside || at >= 0) sum += taps.weight[tap] * src[at];
    }
    dst[p] = sum;
  }
}

template <Mode mode, size_t n_axes>
void run_block(const GridSample& g, int64_t block, void* const* pointers) {
  constexpr int64_t kTaps = taps_over(mode, n_axes), kAxes = n_axes;
  const int64_t n_blocks = (g.points + kPoints - 1) / kPoints;
  const int64_t image = block / n_blocks, first = block % n_blocks * kPoints;
  const int64_t n = std::min(kPoints, g.points - first);
  const float* grid = static_cast<const float*>(pointers[1]) + (image * g.points + first) * kAxes;
  PointTaps taps;
  bool is_inside = true;
  for (int64_t p = 0; p < n; ++p)
    is_inside &= find_taps<mode, n_axes>(g, grid + p * kAxes, taps.at.data() + p * kTaps,
                                         taps.weight.data() + p * kTaps);
  auto* const sum = is_inside ? sum_taps<kTaps, true> : sum_taps<kTaps, false>;
  const float* src = static_cast<const float*>(pointers[0]) + image * g.channels * g.pixels;
  float* dst = static_cast<float*>(pointers[2]) + image * g.channels * g.points + first;
  for (int64_t c = 0; c < g.channels; ++c)
    sum(taps, n, src + c * g.pixels, dst + c * g.points);
}

using Block = void (*)(const GridSample&, int64_t, void* const*);
template <Mode mode>
Block block_for(size_t n_axes) {
  return n_axes == 1 ? run_block<mode, 1> : n_axes == 2 ? run_block<mode, 2> : run_block<mode, 3>;
}
Block block_for(const GridSample& g) {
  if (g.mode == Mode::kNearest) return block_for<Mode::kNearest>(g.n_axes);
  return g.mode == Mode::kLinear ? block_for<Mode::kLinear>(g.n_axes)
                                 : block_for<Mode::kCubic>(g.n_axes);
}

const char* run(const GridSample& g, const kernels::Context& context, void* const* pointers) {
  const int64_t n_blocks = (g.points + kPoints - 1) / kPoints;
  const Block sample_block = block_for(g);
  kernels::parallel_for(context.parallel, g.images * n_blocks,
                        kernels::grain_rows(kPoints * (64 + 32 * g.channels)),
                        [&](int64_t lo, int64_t hi) {
                          for (int64_t block = lo; block < hi; ++block)
                            sample_block(g, block, pointers);
                        });
  return nullptr;
}

}  // namespace

std::string refuse_grid_sample(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  const Value& grid = graph.values[node.inputs[1]];
  if (src.type != ElementType::kF32 || grid.type != ElementType::kF32) return "only f32";
  const size_t rank = src.dims.size();
  return rank >= 3 && rank <= 2 + kMostAxes ? "" : "only one to three axes of pixels";
}

void lower_grid_sample(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& src = graph.values[node.inputs[0]].dims;
  const std::string mode = node.text("mode", "linear");
  const std::string padding = node.text("padding_mode", "zeros");
  GridSample g{.mode = mode == "nearest" ? Mode::kNearest
                       : mode == "cubic" ? Mode::kCubic
                                         : Mode::kLinear,
               .padding = padding == "border"       ? Padding::kBorder
                          : padding == "reflection" ? Padding::kReflection
                                                    : Padding::kZeros,
               .has_corners = node.integer("align_corners", 0) != 0,
               .n_axes = src.size() - 2,
               .images = src[0],
               .channels = src[1]};
  std::copy(src.begin() + 2, src.end(), g.sizes.begin());
  g.pixels = element_count(Dims(src.begin() + 2, src.end()));
  g.points = graph.values[node.inputs[1]].count() /
             std::max<int64_t>(1, g.images * static_cast<int64_t>(g.n_axes));
  lower_dense(lowering, index, "tenon:grid_sample",
              [g](const kernels::Context& context, void* const* pointers) {
                return run(g, context, pointers);
              });
}

}  // namespace tenon::onednn
