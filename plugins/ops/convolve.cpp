// SPDX-License-Identifier: Apache-2.0
#include "convolve.hpp"

namespace tenon::ops {

Result<ConvSizes> conv_sizes(Node node, std::span<const int64_t> x, std::span<const int64_t> w) {
  if (x.size() < 3 || w.size() != x.size()) {
    return invalid(cat("expected x and w of one rank from 3, got ", x.size(), " and ", w.size()));
  }
  ConvSizes s;
  s.batch = x[0];
  s.groups = node.attr_int("group", 1);
  const bool fits = s.groups >= 1 && x[1] % s.groups == 0 && x[1] / s.groups == w[1];
  if (!fits || w[0] % s.groups != 0) {
    return invalid(cat("expected x with channels = w's ", w[1], " * group ", s.groups,
                       " and w's outputs divisible by it, got ", x[1], " channels and ", w[0],
                       " outputs"));
  }
  s.in_channels = w[1];
  s.out_channels = w[0] / s.groups;
  TN_TRY(window, window_of(node, x.subspan(2), w.subspan(2)));
  s.window = window;
  return s;
}

std::vector<int64_t> conv_out_shape(const ConvSizes& s) {
  std::vector<int64_t> out{s.batch, s.groups * s.out_channels};
  for (int64_t size : s.window.out_shape())
    out.push_back(size);
  return out;
}

Status conv_shape(EditView edit, Node node, uint64_t weight_input, uint32_t out_dtype) {
  Type x = node.input(0).type(), w = node.input(weight_input).type();
  if (!x.ranked) return set_output(edit, node, 0, unranked(out_dtype));
  Dims in = dims_of(x), out;
  if (in.size() < 3) return invalid(cat("x: expected rank from 3, got ", in.size()));
  std::vector<int64_t> stated = node.attr_ints("kernel_shape");
  Dims weight(in.size());
  if (w.ranked) weight = dims_of(w);
  if (weight.size() != in.size()) {
    return invalid(cat("w: expected rank ", in.size(), " as x, got ", weight.size()));
  }
  Dims kernel(weight.begin() + 2, weight.end());
  if (!stated.empty() && stated.size() != kernel.size()) {
    return invalid(cat("kernel_shape: expected ", kernel.size(), " numbers, got ", stated.size()));
  }
  for (size_t i = 0; i < stated.size(); ++i) {
    if (kernel[i].known() && !kernel[i].is(stated[i])) {
      return invalid(cat("kernel_shape: expected w's ", *kernel[i].value, ", got ", stated[i]));
    }
    kernel[i] = stated[i];
  }
  Dim channels = weight[1] * Dim(node.attr_int("group", 1));
  if (in[1].known() && channels.known() && !(in[1] == channels)) {
    return invalid(cat("x: expected ", *channels.value, " channels, got ", *in[1].value));
  }
  TN_TRY(spatial, window_dims(node, Dims(in.begin() + 2, in.end()), kernel));
  out = {in[0], weight[0]};
  out.insert(out.end(), spatial.begin(), spatial.end());
  return set_output(edit, node, 0, out_dtype, out);
}

double conv_flops(Node node, uint64_t weight_input) {
  Type w = node.input(weight_input).type(), y = node.output().type();
  if (!w.is_static() || !y.is_static() || w.dims.empty() || w.dims[0] == 0) return 0;
  return 2.0 * static_cast<double>(y.elements()) * static_cast<double>(w.elements() / w.dims[0]);
}

std::vector<Attr> conv_attributes(Node node) {
  std::vector<Attr> attrs{{"group", node.attr_int("group", 1)}};
  for (const char* name : {"strides", "dilations", "pads", "kernel_shape", "auto_pad"})
    if (node.attr(name).tag != TN_ANY_NONE) attrs.emplace_back(name, node.attr(name));
  return attrs;
}

Value bias_gradient(Gradients& g, Value dy) {
  std::vector<int64_t> axes{0};
  for (size_t i = 2; i < g.ranked(dy, "Conv").rank(); ++i)
    axes.push_back(static_cast<int64_t>(i));
  return g.sum(dy, axes, false);
}

}  // namespace tenon::ops
