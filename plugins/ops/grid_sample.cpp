// SPDX-License-Identifier: Apache-2.0
// GridSample and AffineGrid (Jaderberg et al. 2015, spatial transformers), over any number of axes.
#include "grid_sample.hpp"

#include <algorithm>
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "matrices.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status grid_sample_shape(EditView edit, Node node) {
  TN_CHECK(rules_of(node).status());
  Type x = node.input(0).type(), grid = node.input(1).type();
  if (!x.ranked || !grid.ranked) return set_output(edit, node, 0, unranked(x.dtype));
  Dims out = dims_of(grid), in = dims_of(x);
  const auto n_axes = static_cast<int64_t>(x.rank()) - 2;
  const bool fits = n_axes > 0 && grid.rank() == x.rank() &&
                    (grid.dims[x.rank() - 1] < 0 || grid.dims[x.rank() - 1] == n_axes);
  if (!fits) return invalid("expected x [n, c, s..] and grid [n, s.., number of s]");
  out.pop_back();
  out.insert(out.begin() + 1, in[1]);
  return set_output(edit, node, 0, x.dtype, out);
}

// One axis of x: where a coordinate of the grid meets it.
struct Axis {
  const Rules& rules;
  int64_t size;

  double reflect(double x) const {
    double low = rules.corners ? 0 : -0.5,
           range = static_cast<double>(rules.corners ? size - 1 : size);
    if (x >= low && x <= low + range) return x;
    if (range <= 0) return 0;
    double away = x < low ? low - x : x - low - range;
    double turns = std::floor(away / range), rest = away - turns * range;
    bool from_low = (std::fmod(turns, 2) == 0) == (x < low);
    return from_low ? low + rest : low + range - rest;
  }
  // In pixels; stated in -1..1, and as float where the grid is float, as files have it.
  double position(double n, bool single) const {
    double length = static_cast<double>(size);
    double x = rules.corners ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2;
    if (single) x = static_cast<double>(static_cast<float>(x));
    if (!std::isfinite(x)) x = -1;
    if (rules.mode == Mode::kNearest) x = std::nearbyint(x);
    double low = rules.corners ? 0 : -0.5;
    bool inside = x >= low && x <= low + (rules.corners ? length - 1 : length);
    if (inside || rules.padding == Padding::kZeros) return x;
    // The weights of a cubic follow from where the coordinate lies, also beyond the border; only
    // its taps stop there (PyTorch and ONNX Runtime; ONNX's own evaluator moves the coordinate).
    if (rules.padding == Padding::kBorder)
      return rules.mode == Mode::kCubic ? x : std::clamp(x, 0.0, length - 1);
    return reflect(x);
  }
  // A pixel's place, or -1 for one that is 0.
  int64_t pixel(int64_t i) const {
    if (i >= 0 && i < size) return i;
    if (rules.padding == Padding::kZeros) return -1;
    if (rules.padding == Padding::kBorder) return std::clamp<int64_t>(i, 0, size - 1);
    return std::clamp<int64_t>(static_cast<int64_t>(reflect(static_cast<double>(i))), 0, size - 1);
  }
};

struct Tap {
  int64_t at;
  double weight;
};

// Cubic weights by Keys (1981) with a = -0.75.
double cubic(double t) {
  constexpr double a = -0.75;
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

std::vector<Tap> taps_of(const Axis& axis, double x) {
  std::vector<Tap> out;
  x = std::clamp(x, -0x1p62, 0x1p62);  // far outside all the same, and a number that has neighbours
  auto floor = static_cast<int64_t>(std::floor(x));
  auto add = [&](int64_t i, double weight) {
    if (int64_t at = axis.pixel(i); at >= 0) out.push_back({at, weight});
  };
  double t = x - static_cast<double>(floor);
  switch (axis.rules.mode) {
    case Mode::kNearest:
      add(static_cast<int64_t>(std::nearbyint(x)), 1);
      break;
    case Mode::kLinear:
      add(floor, 1 - t);
      add(floor + 1, t);
      break;
    case Mode::kCubic:
      for (int64_t k = -1; k <= 2; ++k)
        add(floor + k, cubic(t - static_cast<double>(k)));
      break;
  }
  return out;
}

// The weighted sum over all taps of all axes from axis d on.
double gather(const std::vector<std::vector<Tap>>& taps,
              const std::vector<int64_t>& strides,
              size_t d,
              int64_t at,
              const std::vector<double>& x) {
  if (d == taps.size()) return x[static_cast<size_t>(at)];
  double sum = 0;
  for (const Tap& tap : taps[d])
    sum += tap.weight * gather(taps, strides, d + 1, at + tap.at * strides[d], x);
  return sum;
}

Status grid_sample_ref(const Call& call) {
  TN_TRY(rules, rules_of(call.node()));
  std::span<const int64_t> x = call.shape(0), grid = call.shape(1);
  size_t n_axes = x.size() < 3 ? 0 : x.size() - 2;
  if (n_axes == 0 || grid.size() != x.size() || grid[0] != x[0] ||
      grid.back() != static_cast<int64_t>(n_axes))
    return invalid("expected x [n, c, s..] and grid [n, s.., number of s]");
  std::vector<int64_t> shape(grid.begin(), grid.end() - 1), spatial(x.begin() + 2, x.end());
  shape.insert(shape.begin() + 1, x[1]);
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  int64_t plane = element_count(spatial), points = element_count(grid.subspan(1, n_axes));
  if (plane == 0 && element_count(out) > 0) return invalid("x: expected pixels, got none");
  std::vector<int64_t> strides = dense_strides(spatial);
  const Rules& how = rules;
  for (int64_t image = 0; image < x[0] * x[1]; ++image) {
    std::vector<double> pixels(static_cast<size_t>(plane));
    for (int64_t i = 0; i < plane; ++i)
      pixels[static_cast<size_t>(i)] =
          load_number(call.data<char>(0), call.dtype(0), image * plane + i);
    auto body = [&](uint64_t begin, uint64_t end) {
      std::vector<std::vector<Tap>> taps(n_axes);
      for (auto p = static_cast<int64_t>(begin); p < static_cast<int64_t>(end); ++p) {
        int64_t at = (image / x[1] * points + p) * static_cast<int64_t>(n_axes);
        for (size_t d = 0; d < n_axes; ++d) {  // the grid names the last axis first
          Axis axis{how, spatial[d]};
          double n = load_number(call.data<char>(1), call.dtype(1),
                                 at + static_cast<int64_t>(n_axes - 1 - d));
          taps[d] = taps_of(axis, axis.position(n, call.dtype(1) != TN_F64));
        }
        store_number(data_of<char>(out), call.dtype(0), image * points + p,
                     gather(taps, strides, 0, 0, pixels));
      }
    };
    parallel_for(call.ctx(), static_cast<uint64_t>(points), 256, body);
  }
  return {};
}

Result<Node> grid_sample_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  std::vector<int64_t> x{random.integer(1, 2), random.integer(1, 3)}, grid{x[0]};
  int64_t n_axes = random.integer(1, 3);
  for (int64_t d = 0; d < n_axes; ++d) {
    x.push_back(random.integer(2, 4));
    grid.push_back(random.integer(1, 3));
  }
  grid.push_back(n_axes);
  TN_TRY(image, random.input(TN_F32, x));
  TN_TRY(places, random.input(TN_F32, grid));
  return edit.add({.type = "GridSample",
                   .inputs = {image, places},
                   .attrs = {{"mode", kModes[random.integer(0, 2)]},
                             {"padding_mode", kPaddings[random.integer(0, 2)]},
                             {"align_corners", random.integer(0, 1)}}});
}

// theta [n, 2, 3] and size [n, c, h, w] give grid [n, h, w, 2]; with one axis more likewise.
Status affine_shape(EditView edit, Node node) {
  Type theta = node.input(0).type();
  std::optional<Dims> size = contents(node.input(1));
  if (!size || size->size() < 3) return set_output(edit, node, 0, unranked(theta.dtype));
  Dims out = *size;
  out.erase(out.begin() + 1);
  out.emplace_back(static_cast<int64_t>(size->size()) - 2);
  return set_output(edit, node, 0, theta.dtype, out);
}

Status affine_ref(const Call& call) {
  TN_TRY(size, read_shape(call.in(1), "size"));
  std::vector<int64_t> theta = to_vector(call.shape(0));
  if (size.size() != 4 && size.size() != 5)
    return invalid(cat("size: expected 4 or 5 numbers, got ", size.size()));
  auto n_axes = static_cast<int64_t>(size.size()) - 2;
  if (theta != std::vector<int64_t>{size[0], n_axes, n_axes + 1})
    return invalid(cat("theta: expected [", size[0], ", ", n_axes, ", ", n_axes + 1, "]"));
  std::vector<int64_t> spatial(size.begin() + 2, size.end()), shape = spatial;
  shape.insert(shape.begin(), size[0]);
  shape.push_back(n_axes);
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  bool corners = call.node().attr_int("align_corners") != 0;
  int64_t points = element_count(spatial);
  for (int64_t i = 0; i < size[0] * points; ++i) {
    Odometer at(spatial, i % points);
    for (int64_t row = 0; row < n_axes; ++row) {
      int64_t first = (i / points * n_axes + row) * (n_axes + 1);
      double sum = load_number(call.data<char>(0), call.dtype(0), first + n_axes);
      for (int64_t k = 0; k < n_axes; ++k) {  // theta names the last axis first
        auto axis = static_cast<size_t>(n_axes - 1 - k);
        auto length = static_cast<double>(spatial[axis]), place = static_cast<double>(at[axis]);
        double x = corners ? (length > 1 ? 2 * place / (length - 1) - 1 : 0)
                           : (2 * place + 1) / length - 1;
        sum += load_number(call.data<char>(0), call.dtype(0), first + k) * x;
      }
      store_number(data_of<char>(out), call.dtype(0), i * n_axes + row, sum);
    }
  }
  return {};
}

// Points of the unit grid, each with a 1, times the transpose of theta.
Result<std::vector<Value>> affine_decompose(EditView edit, Node node) {
  std::optional<std::vector<int64_t>> size = known_ints(node.input(1));
  if (!size || (size->size() != 4 && size->size() != 5))
    return unsupported("AffineGrid: composite where size is known");
  Builder b(edit);
  uint32_t dtype = node.input(0).dtype();
  std::vector<int64_t> spatial(size->begin() + 2, size->end()), shape = spatial;
  auto n_axes = static_cast<int64_t>(spatial.size());
  int64_t points = 1;
  for (int64_t length : spatial) {
    TN_CHECK(check_matrix(points * (n_axes + 1), length));
    points *= length;
  }
  std::vector<double> base;
  bool corners = node.attr_int("align_corners") != 0;
  for (int64_t p = 0; p < points; ++p) {
    Odometer at(spatial, p);
    for (size_t d = spatial.size(); d-- > 0;) {
      auto length = static_cast<double>(spatial[d]), place = static_cast<double>(at[d]);
      base.push_back(corners ? (length > 1 ? 2 * place / (length - 1) - 1 : 0)
                             : (2 * place + 1) / length - 1);
    }
    base.push_back(1);
  }
  Value y = b.op("MatMul", {constant_of(b, dtype, {points, n_axes + 1}, base),
                            b.transpose(node.input(0), {0, 2, 1})});
  shape.insert(shape.begin(), size->at(0));
  shape.push_back(n_axes);
  y = b.reshape(y, shape);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> affine_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> size{random.integer(1, 2), 3};
  int64_t n_axes = random.integer(2, 3);
  for (int64_t d = 0; d < n_axes; ++d)
    size.push_back(random.integer(1, 4));
  TN_TRY(theta, random.input(TN_F32, {size[0], n_axes, n_axes + 1}));
  TN_TRY(sizes, edit.ints(size));
  return edit.add({.type = "AffineGrid",
                   .inputs = {theta, sizes},
                   .attrs = {{"align_corners", random.integer(0, 1)}}});
}

OpCost sample_cost(Node node) {
  Type x = node.input(0).type();
  double taps = x.ranked ? std::exp2(static_cast<double>(x.rank()) - 2) : 4;
  return {2 * taps * output_elements(node), node_bytes(node)};
}

constexpr tn_op kGridSample =
    op_row({.type = "GridSample",
            .since = 22,
            .attributes = R"([{"name": "align_corners", "type": "int", "default": 0},
                              {"name": "mode", "type": "string", "default": "linear"},
                              {"name": "padding_mode", "type": "string", "default": "zeros"}])",
            .shape = shape<grid_sample_shape, "x: number|bool[n c s..], grid: float[n s'.. _]">,
            .decompose = decompose<grid_sample_decompose>,
            .cost = cost<sample_cost>,
            .ref = ref<grid_sample_ref>,
            .sample = sample<grid_sample_sample>,
            .cast = "cpu=fp32 cuda=promote"});
constexpr tn_op kAffineGrid =
    op_row({.type = "AffineGrid",
            .since = 20,
            .attributes = R"([{"name": "align_corners", "type": "int", "default": 0}])",
            .shape = shape<affine_shape, "theta: float[n r _], size: int[_]">,
            .decompose = decompose<affine_decompose>,
            .cost = cost<move_cost>,
            .ref = ref<affine_ref>,
            .sample = sample<affine_sample>});

}  // namespace

TENON_OPS(grid_sample, &kGridSample, &kAffineGrid)

}  // namespace tenon::ops
