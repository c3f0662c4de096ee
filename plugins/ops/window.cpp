// SPDX-License-Identifier: Apache-2.0
#include "window.hpp"

#include <algorithm>

#include "stated.hpp"

namespace tenon::ops {
namespace {

struct Settings {
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad;
  bool ceil_mode;
};

Status check_list(std::string_view name, const Ints& list, size_t n, int64_t least) {
  if (list.size() != n) return invalid(cat(name, ": expected ", n, " numbers, got ", list.size()));
  return expect_moderate(name, list, least);
}

Result<Settings> settings_of(Node node, size_t rank) {
  Settings s{node.attr_ints("strides"), node.attr_ints("dilations"), node.attr_ints("pads"),
             std::string(node.attr_text("auto_pad", "NOTSET")), node.attr_int("ceil_mode") != 0};
  if (s.strides.empty()) s.strides.assign(rank, 1);
  if (s.dilations.empty()) s.dilations.assign(rank, 1);
  if (s.pads.empty() || s.auto_pad != "NOTSET") s.pads.assign(rank * 2, 0);
  TN_CHECK(check_list("strides", s.strides, rank, 1));
  TN_CHECK(check_list("dilations", s.dilations, rank, 1));
  TN_CHECK(check_list("pads", s.pads, rank * 2, INT32_MIN));
  constexpr std::string_view kModes[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  if (std::find(std::begin(kModes), std::end(kModes), s.auto_pad) == std::end(kModes)) {
    return invalid(cat("auto_pad: expected one of NOTSET, VALID, SAME_UPPER, SAME_LOWER, got '",
                       s.auto_pad, "'"));
  }
  return s;
}

bool is_same(const Settings& s) {
  return s.auto_pad.starts_with("SAME");
}

// Output size along one axis; `padded` is the input with its padding, `reach` the kernel's extent.
Result<Dim> out_dim(const Settings& s, size_t i, const Dim& in, const Dim& kernel) {
  int64_t stride = s.strides[i];
  if (kernel.known()) TN_CHECK(expect_moderate("kernel", {*kernel.value}, 1));
  if (is_same(s)) return Result<Dim>(floor_divide(in + Dim(stride - 1), stride));
  size_t rank = s.strides.size();
  Dim reach = (kernel - Dim(1)) * Dim(s.dilations[i]) + Dim(1);
  Dim padded = in + Dim(s.pads[i] + s.pads[i + rank]);
  Dim steps = padded - reach;
  // With ceil_mode the last window, which may be the only one, reaches less than a stride too far.
  const int64_t excess = s.ceil_mode ? stride - 1 : 0;
  if (steps.known() && *steps.value + excess < 0) {
    if (in.is(0)) return Dim(0);  // nothing in, nothing out
    return invalid(cat("spatial axis ", i, ": expected a window of at most ",
                       *padded.value + excess, ", the input with its padding",
                       excess > 0 ? " and a part of a stride" : "", ", got ", *reach.value));
  }
  if (!s.ceil_mode) return Result<Dim>(floor_divide(steps, stride) + Dim(1));
  Dim out = floor_divide(steps + Dim(excess), stride) + Dim(1);
  if (out.known() && in.known() && (*out.value - 1) * stride >= *in.value + s.pads[i]) {
    out = *out.value - 1;  // a window must start inside the input or its left padding
  }
  return Result<Dim>(!out.known() && stride > 1 ? Dim() : out);
}

// Whether output o of this axis meets at least one element of the input.
bool meets_input(const Window& w, size_t axis, int64_t o) {
  int64_t start = w.position(axis, o, 0), step = w.dilation[axis];
  int64_t skipped = start < 0 ? (-start + step - 1) / step : 0;
  return skipped < w.kernel[axis] && start + skipped * step < w.in[axis];
}

}  // namespace

Result<Window> window_of(Node node,
                         std::span<const int64_t> spatial,
                         std::span<const int64_t> kernel) {
  size_t rank = spatial.size();
  if (rank > kMaxSpatial) {
    return unsupported(cat("expected at most ", kMaxSpatial, " spatial axes, got ", rank));
  }
  if (kernel.size() != rank) {
    return invalid(cat("kernel: expected ", rank, " sizes, got ", kernel.size()));
  }
  TN_TRY(s, settings_of(node, rank));
  Window w;
  w.rank = rank;
  for (size_t i = 0; i < rank; ++i) {
    size_t axis = kMaxSpatial - rank + i;
    w.in[axis] = spatial[i];
    w.kernel[axis] = kernel[i];
    w.stride[axis] = s.strides[i];
    w.dilation[axis] = s.dilations[i];
    TN_TRY(out, out_dim(s, i, spatial[i], kernel[i]));
    w.out[axis] = *out.value;
    w.pad_begin[axis] = s.pads[i];
    w.pad_end[axis] = s.pads[i + rank];
    if (is_same(s)) {
      int64_t reach = (kernel[i] - 1) * s.dilations[i] + 1;
      int64_t total = std::max<int64_t>(0, (w.out[axis] - 1) * s.strides[i] + reach - spatial[i]);
      w.pad_begin[axis] = s.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pad_end[axis] = total - w.pad_begin[axis];
    }
  }
  return w;
}

Result<Dims> window_dims(Node node, const Dims& spatial, const Dims& kernel) {
  if (kernel.size() != spatial.size()) {
    return invalid(cat("kernel: expected ", spatial.size(), " sizes, got ", kernel.size()));
  }
  TN_TRY(s, settings_of(node, spatial.size()));
  Dims out;
  for (size_t i = 0; i < spatial.size(); ++i) {
    TN_TRY(dim, out_dim(s, i, spatial[i], kernel[i]));
    out.push_back(dim);
  }
  return out;
}

Status expect_taps_inside(const Window& w) {
  if (w.out_count() == 0) return {};
  for (size_t axis = kMaxSpatial - w.rank; axis < kMaxSpatial; ++axis) {
    // From the first window on, all that begin in the input meet it.
    int64_t o = 0;
    while (o < w.out[axis] && w.position(axis, o, 0) < 0 && meets_input(w, axis, o))
      ++o;
    for (int64_t at : {std::min(o, w.out[axis] - 1), w.out[axis] - 1})
      if (!meets_input(w, axis, at))
        return invalid(cat("pads: expected less than the window along spatial axis ",
                           axis + w.rank - kMaxSpatial, ", got window ", at,
                           " wholly in the padding"));
  }
  return {};
}

Status expect_taps_inside(Node node, const Dims& spatial, const Dims& kernel) {
  std::optional<Ints> in = known_ints(spatial), sizes = known_ints(kernel);
  if (!in || !sizes) return {};
  TN_TRY(window, window_of(node, *in, *sizes));
  return expect_taps_inside(window);
}

Status expect_window(Node node, const Dims& spatial, const Dims& kernel, const Dims& dy) {
  TN_TRY(out, window_dims(node, spatial, kernel));
  if (dy.size() != out.size())
    return invalid(cat("dy: expected ", out.size(), " spatial axes, got ", dy.size()));
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i].known() && dy[i].known() && !(out[i] == dy[i]))
      return invalid(
          cat("dy: expected ", *out[i].value, " at spatial axis ", i, ", got ", *dy[i].value));
  return {};
}

Status expect_pool_of(Node node, const Dims& x) {
  Type dy = node.input(0).type();
  Dims kernel;
  for (int64_t size : node.attr_ints("kernel_shape"))
    kernel.emplace_back(size);
  if (x.size() < 3) return invalid(cat("x: expected rank from 3, got ", x.size()));
  Dims spatial(x.begin() + 2, x.end()), got(spatial.size());
  if (dy.ranked) {
    got = dims_of(dy);
    got.erase(got.begin(), got.begin() + std::min<int64_t>(2, static_cast<int64_t>(got.size())));
  }
  return expect_window(node, spatial, kernel, got);
}

}  // namespace tenon::ops
