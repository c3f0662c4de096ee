// SPDX-License-Identifier: Apache-2.0
// Resize: nearest, linear and cubic, all coordinate rules, antialiasing, per axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "matrices.hpp"
#include "resize_taps.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using resizing::Axis, resizing::Settings, resizing::Taps;
using resizing::settings_of, resizing::taps_of;

struct Words {
  std::string_view attribute, fallback;
  std::initializer_list<std::string_view> known;
};

Status check_words(Node node) {
  const Words rows[] = {
      {"mode", "nearest", {"nearest", "linear", "cubic"}},
      {"coordinate_transformation_mode",
       "half_pixel",
       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_crop_and_resize"}},
      {"nearest_mode",
       "round_prefer_floor",
       {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
      {"keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"}},
  };
  for (const Words& row : rows) {
    std::string_view got = node.attr_text(row.attribute, row.fallback);
    if (std::find(row.known.begin(), row.known.end(), got) != row.known.end()) continue;
    std::string known;
    for (std::string_view word : row.known)
      known += cat(known.empty() ? "" : ", ", word);
    return invalid(cat(row.attribute, ": expected one of ", known, ", got '", got, "'"));
  }
  return {};
}

Result<std::vector<int64_t>> axes_of(Node node, size_t rank) {
  std::vector<int64_t> axes = node.attr_ints("axes");
  if (axes.empty())
    for (size_t i = 0; i < rank; ++i)
      axes.push_back(static_cast<int64_t>(i));
  for (int64_t& axis : axes) {
    TN_TRY(checked, axis_in(axis, rank, "axes"));
    axis = checked;
  }
  return axes;
}

// The scales that keep the aspect ratio, by keep_aspect_ratio_policy.
void keep_aspect(std::string_view policy,
                 std::vector<Axis>& axes,
                 const std::vector<int64_t>& which) {
  if (policy == "stretch" || policy.empty()) return;
  double scale = policy == "not_larger" ? HUGE_VAL : 0;
  for (int64_t axis : which) {
    const Axis& a = axes[static_cast<size_t>(axis)];
    double own = static_cast<double>(a.out) / static_cast<double>(a.in);
    scale = policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
  }
  for (int64_t axis : which) {
    Axis& a = axes[static_cast<size_t>(axis)];
    a.scale = scale;
    a.out = static_cast<int64_t>(std::floor(scale * static_cast<double>(a.in) + 0.5));
  }
}

// In float, as ONNX's inference and ONNX Runtime compute it: 10 times 2.3f is 23, in double less.
int64_t scaled_size(int64_t size, double scale) {
  return static_cast<int64_t>(std::floor(static_cast<float>(size) * static_cast<float>(scale)));
}

// Files of before opset 13 pass empty scales beside the sizes.
Status expect_one_of(uint64_t n_scales, uint64_t n_sizes) {
  if (n_scales == 0 || n_sizes == 0) return {};
  return invalid(
      cat("expected scales or sizes, got both: ", n_scales, " and ", n_sizes, " numbers"));
}

// How many elements a vector is known to have; 0 where nothing is known.
uint64_t known_length(Value list) {
  if (!list) return 0;
  Type type = list.type();
  return type.ranked && type.is_static() && type.dims.size() == 1
             ? static_cast<uint64_t>(type.dims[0])
             : 0;
}

Result<std::vector<Axis>> plan_axes(Node node,
                                    std::span<const int64_t> in,
                                    const std::vector<double>& scales,
                                    const std::vector<int64_t>& sizes) {
  std::vector<Axis> axes;
  for (int64_t size : in)
    axes.push_back({size, size});
  TN_TRY(which, axes_of(node, in.size()));
  TN_CHECK(expect_one_of(scales.size(), sizes.size()));
  size_t given = sizes.empty() ? scales.size() : sizes.size();
  if (given != which.size())
    return invalid(cat("scales or sizes: expected ", which.size(), " numbers, got ", given));
  for (size_t i = 0; i < which.size(); ++i) {
    Axis& a = axes[static_cast<size_t>(which[i])];
    if (sizes.empty()) {
      if (!(scales[i] > 0 && static_cast<double>(a.in) * scales[i] < 1e9))
        return invalid(cat("scales: expected numbers above 0, got ", scales[i]));
      a.scale = scales[i];
      a.out = scaled_size(a.in, scales[i]);
    } else {
      if (sizes[i] < 0) return invalid(cat("sizes: expected numbers from 0, got ", sizes[i]));
      a.out = sizes[i];
      a.scale = static_cast<double>(sizes[i]) / static_cast<double>(a.in);
    }
  }
  if (!sizes.empty()) keep_aspect(node.attr_text("keep_aspect_ratio_policy"), axes, which);
  return axes;
}

std::vector<double> read_floats(const DLTensor& tensor) {
  std::vector<double> out;
  Status ignored = dispatch<kFloats>(dtype_of(tensor), [&]<class T>() -> Status {
    for (int64_t i = 0, n = element_count(tensor); i < n; ++i)
      out.push_back(static_cast<double>(data_of<const T>(tensor)[i]));
    return {};
  });
  return out;
}

Status resize_shape(EditView edit, Node node) {
  TN_CHECK(check_words(node));
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  Dims out = dims_of(x);
  TN_TRY(which, axes_of(node, out.size()));
  Value scales = node.input(2), sizes = node.input(3);
  TN_CHECK(expect_one_of(known_length(scales), known_length(sizes)));
  std::optional<Dims> wanted = contents(sizes);
  std::vector<double> factors;
  if (scales && scales.is_constant()) factors = read_floats(scales.constant().dl());
  bool stretch = node.attr_text("keep_aspect_ratio_policy", "stretch") == "stretch";
  if (x.is_static() && (!factors.empty() || known_ints(sizes))) {
    std::vector<int64_t> numbers = known_ints(sizes).value_or(std::vector<int64_t>{});
    TN_TRY(axes, plan_axes(node, x.dims, factors, numbers));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = axes[i].out;
    return set_output(edit, node, 0, x.dtype, out);
  }
  for (size_t i = 0; i < which.size(); ++i) {
    Dim& dim = out[static_cast<size_t>(which[i])];
    if (wanted && wanted->size() == which.size() && stretch) {
      dim = (*wanted)[i];
    } else if (factors.size() == which.size()) {
      double factor = factors[i];
      bool whole = factor == std::floor(factor) && factor > 0 && factor < 1e6;
      double inverse = 1 / factor;
      if (!(factor > 0 && factor < 1e6))
        dim = Dim();
      else if (dim.known())
        dim = scaled_size(*dim.value, factor);
      else if (whole)
        dim = dim * Dim(static_cast<int64_t>(factor));
      else if (inverse == std::floor(inverse))
        dim = floor_divide(dim, int64_t(inverse));
      else
        dim = Dim();
    } else {
      dim = Dim();
    }
  }
  return set_output(edit, node, 0, x.dtype, out);
}

// roi: the beginnings of the region along these axes, then its ends.
Status set_regions(std::vector<Axis>& axes,
                   const std::vector<int64_t>& which,
                   const std::vector<double>& roi) {
  if (roi.size() != which.size() * 2)
    return invalid(cat("roi: expected ", which.size() * 2, " numbers, got ", roi.size()));
  for (size_t i = 0; i < which.size(); ++i) {
    axes[static_cast<size_t>(which[i])].roi_start = roi[i];
    axes[static_cast<size_t>(which[i])].roi_end = roi[i + which.size()];
  }
  return {};
}

// One axis at a time: separable, in double.
std::vector<double> resize_axis(tn_ctx* ctx,
                                const std::vector<double>& in,
                                int64_t outer,
                                int64_t inner,
                                const Settings& s,
                                const Axis& a,
                                double extrapolated) {
  std::vector<double> out(static_cast<size_t>(outer * a.out * inner));
  std::vector<Taps> taps;
  for (int64_t i = 0; i < a.out; ++i)
    taps.push_back(taps_of(s, a, i));
  parallel_for(ctx, static_cast<uint64_t>(outer), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t o = begin; o < end; ++o) {
      for (int64_t i = 0; i < a.out; ++i) {
        const Taps& t = taps[static_cast<size_t>(i)];
        double* to = out.data() + (int64_t(o) * a.out + i) * inner;
        for (int64_t k = 0; k < inner && t.outside; ++k)
          to[k] = extrapolated;
        for (size_t n = 0; n < t.at.size() && !t.outside; ++n) {
          const double* from = in.data() + (int64_t(o) * a.in + t.at[n]) * inner;
          for (int64_t k = 0; k < inner; ++k)
            to[k] += t.weight[n] * from[k];
        }
      }
    }
  });
  return out;
}

// Cubic weights reach beyond the numbers that they weigh.
template <class T>
T stored(double value) {
  if constexpr (kIsFloat<T>) {
    return static_cast<T>(value);
  } else {
    using Ends = std::numeric_limits<T>;
    const double whole = std::nearbyint(value);
    if (whole >= static_cast<double>(Ends::max())) return Ends::max();
    return whole <= static_cast<double>(Ends::min()) ? Ends::min() : static_cast<T>(whole);
  }
}

// The nearest elements as they are, of any type.
void take_nearest(const Call& call,
                  const Settings& s,
                  const std::vector<Axis>& axes,
                  const std::vector<int64_t>& which,
                  const DLTensor& out) {
  const std::vector<int64_t> strides = dense_strides(call.shape(0));
  std::vector<std::vector<int64_t>> at(axes.size());  // of each axis, in elements
  int64_t rows = 1;
  for (size_t d = 0; d < axes.size(); ++d) {
    const bool moved = std::find(which.begin(), which.end(), int64_t(d)) != which.end();
    for (int64_t i = 0; i < axes[d].out; ++i)
      at[d].push_back((moved ? taps_of(s, axes[d], i).at[0] : i) * strides[d]);
    if (d + 1 < axes.size()) rows *= axes[d].out;
  }
  Cells from(call.in(0)), to(out);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row, first = 0;
    for (size_t d = axes.size() - 1; d-- > 0; rest /= axes[d].out)
      first += at[d][static_cast<size_t>(rest % axes[d].out)];
    for (int64_t i = 0; i < axes.back().out; ++i)
      to.copy(row * axes.back().out + i, from, first + at.back()[static_cast<size_t>(i)]);
  }
  to.flush();
}

Status resize_ref(const Call& call) {
  Node node = call.node();
  std::span<const int64_t> in = call.shape(0);
  std::vector<double> scales;
  std::vector<int64_t> sizes;
  if (call.has(2)) scales = read_floats(call.in(2));
  if (call.has(3)) sizes = read_ints(call.in(3));
  TN_TRY(axes, plan_axes(node, in, scales, sizes));
  Settings s = settings_of(node);
  TN_TRY(which, axes_of(node, in.size()));
  if (call.has(1) && s.rule == "tf_crop_and_resize")
    TN_CHECK(set_regions(axes, which, read_floats(call.in(1))));
  std::vector<int64_t> shape;
  for (const Axis& a : axes)
    shape.push_back(a.out);
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  if (element_count(shape) == 0) return {};
  if (element_count(in) == 0) return invalid("x: expected elements, got none");
  if (s.mode == "nearest" && s.rule != "tf_crop_and_resize" && !axes.empty()) {
    take_nearest(call, s, axes, which, out);
    return {};
  }
  double extrapolated = node.attr_float("extrapolation_value");
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    const T* x = call.data<T>(0);
    std::vector<double> values(static_cast<size_t>(element_count(in)));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(x[i]);
    std::vector<int64_t> now = to_vector(in);
    for (size_t d = 0; d < axes.size(); ++d) {
      AxisSplit split(now, static_cast<int64_t>(d));
      bool moved = std::find(which.begin(), which.end(), int64_t(d)) != which.end();
      if (!moved) continue;
      values = resize_axis(call.ctx(), values, split.outer, split.inner, s, axes[d], extrapolated);
      now[d] = axes[d].out;
    }
    for (size_t i = 0; i < values.size(); ++i)
      data_of<T>(out)[i] = stored<T>(values[i]);
    return {};
  });
}

// y, resized along axis d: a product with the matrix of its taps. What lies outside is a constant.
Result<Value> resized_axis(
    Builder& b, Value y, size_t d, const Settings& s, const Axis& a, double outside) {
  TN_CHECK(check_matrix(a.in, a.out));
  uint32_t dtype = y.dtype();
  size_t rank = y.type().rank();
  std::vector<double> weights(static_cast<size_t>(a.in * a.out)), added(size_t(a.out), 0.0);
  for (int64_t i = 0; i < a.out; ++i) {
    Taps taps = taps_of(s, a, i);
    if (taps.outside) added[size_t(i)] = outside;
    for (size_t k = 0; k < taps.at.size() && !taps.outside; ++k)
      weights[static_cast<size_t>(taps.at[k] * a.out + i)] += taps.weight[k];
  }
  std::vector<int64_t> turn = swapped(rank, d, rank - 1);
  bool last = d + 1 == rank;
  Value product = b.op(
      "MatMul", {last ? y : b.transpose(y, turn), constant_of(b, dtype, {a.in, a.out}, weights)});
  if (std::any_of(added.begin(), added.end(), [](double x) { return x != 0; }))
    product = b.add(product, constant_of(b, dtype, {a.out}, added));
  TN_CHECK(b.status());
  return last ? product : b.transpose(product, turn);
}

Result<std::vector<Value>> resize_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type x = node.input(0).type();
  Value scales = node.input(2), sizes = node.input(3), y = node.input(0);
  Settings s = settings_of(node);
  bool crops = s.rule == "tf_crop_and_resize" && node.input(1);
  bool known = x.is_static() && is_float(x.dtype) && (!sizes || known_ints(sizes)) &&
               (!scales || scales.is_constant()) && (!crops || node.input(1).is_constant());
  if (!known)
    return unsupported("Resize: composite for floats, where all sizes and the region are known");
  std::vector<double> factors;
  if (scales) factors = read_floats(scales.constant().dl());
  std::vector<int64_t> numbers = known_ints(sizes).value_or(std::vector<int64_t>{});
  TN_TRY(axes, plan_axes(node, x.dims, factors, numbers));
  TN_TRY(which, axes_of(node, x.rank()));
  if (crops) TN_CHECK(set_regions(axes, which, read_floats(node.input(1).constant().dl())));
  double outside = node.attr_float("extrapolation_value");
  for (size_t d = 0; d < axes.size(); ++d) {
    const Axis& a = axes[d];
    bool stays = a.in == a.out && a.scale == 1 && s.rule != "tf_crop_and_resize";
    if (stays || std::find(which.begin(), which.end(), int64_t(d)) == which.end()) continue;
    TN_TRY(resized, resized_axis(b, y, d, s, a, outside));
    y = resized;
  }
  if (y == node.input(0)) y = b.op("Identity", {y});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> resize_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims{1, random.integer(1, 3), random.integer(2, 5), random.integer(2, 5)};
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(scales,
         edit.constant<float>(TN_F32, {4}, std::vector<float>{1, 1, 2, random.coin() ? 0.5f : 3}));
  constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
  constexpr const char* kRules[] = {"half_pixel", "asymmetric", "align_corners",
                                    "pytorch_half_pixel"};
  return edit.add({.type = "Resize",
                   .inputs = {x, Value{}, scales},
                   .attrs = {{"mode", kModes[random.integer(0, 2)]},
                             {"coordinate_transformation_mode", kRules[random.integer(0, 3)]}}});
}

constexpr tn_op kResize = op_row(
    {.type = "Resize",
     .since = 19,
     .attributes =
         R"([{"name": "antialias", "type": "int", "default": 0},
             {"name": "axes", "type": "ints"},
             {"name": "coordinate_transformation_mode", "type": "string", "default": "half_pixel"},
             {"name": "cubic_coeff_a", "type": "float", "default": -0.75},
             {"name": "exclude_outside", "type": "int", "default": 0},
             {"name": "extrapolation_value", "type": "float", "default": 0.0},
             {"name": "keep_aspect_ratio_policy", "type": "string", "default": "stretch"},
             {"name": "mode", "type": "string", "default": "nearest"},
             {"name": "nearest_mode", "type": "string", "default": "round_prefer_floor"}])",
     .quant = "requant",
     .shape = shape<resize_shape, "x: number|bool, roi: float?, scales: f32[m]?, sizes: int[k]?">,
     .decompose = decompose<resize_decompose>,
     .cost = cost<[](Node node) { return OpCost{8 * output_elements(node), node_bytes(node)}; }>,
     .ref = ref<resize_ref>,
     .sample = sample<resize_sample>,
     .cast = "cuda=fp32 own=1,2",
     .coupling = "scale scales=2 axes=axes region=1"});

}  // namespace

TENON_OPS(resize, &kResize)

}  // namespace tenon::ops
