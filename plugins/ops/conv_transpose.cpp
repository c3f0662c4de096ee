// SPDX-License-Identifier: Apache-2.0
// ConvTranspose: each input element adds the kernel, scaled, to the output.
#include <algorithm>
#include <functional>
#include <limits>

#include "batching_rules.hpp"
#include "convolve.hpp"
#include "cost.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

struct Sizes {
  std::vector<int64_t> stride, dilation, pad_begin, pad_end, output_padding;
};

// pads and output sizes by ONNX's rules: stated pads give the output, a stated output_shape (or
// auto_pad) gives the pads.
Result<Sizes> sizes_of(Node node, const Dims& in, const Dims& kernel, Dims& out) {
  size_t n = in.size();
  auto list = [&](std::string_view name, size_t count, int64_t fill) {
    std::vector<int64_t> values = node.attr_ints(name);
    return values.empty() ? std::vector<int64_t>(count, fill) : values;
  };
  std::vector<int64_t> pads = list("pads", 2 * n, 0), stated = node.attr_ints("output_shape");
  Sizes s{list("strides", n, 1), list("dilations", n, 1), {}, {}, list("output_padding", n, 0)};
  std::string_view mode = node.attr_text("auto_pad", "NOTSET");
  if (pads.size() != 2 * n || s.stride.size() != n || s.dilation.size() != n ||
      s.output_padding.size() != n || kernel.size() != n || (!stated.empty() && stated.size() < n))
    return invalid(cat(
        "strides, dilations, pads, output_padding, output_shape: expected lists for ", n, " axes"));
  TN_CHECK(expect_moderate("strides", s.stride, 1));
  TN_CHECK(expect_moderate("dilations", s.dilation, 1));
  TN_CHECK(expect_moderate("pads", pads, INT32_MIN));
  TN_CHECK(expect_moderate("output_padding", s.output_padding, 0));
  TN_CHECK(expect_moderate("output_shape", stated, 0));
  out.assign(n, Dim());
  for (size_t i = 0; i < n; ++i) {
    Dim reach = (kernel[i] - Dim(1)) * Dim(s.dilation[i]) + Dim(1);
    Dim full = (in[i] - Dim(1)) * Dim(s.stride[i]) + Dim(s.output_padding[i]) + reach;
    Dim wanted;
    if (!stated.empty())
      wanted = stated[stated.size() - n + i];
    else if (mode.starts_with("SAME"))
      wanted = in[i] * Dim(s.stride[i]);
    if (stated.empty() && !mode.starts_with("SAME")) {
      bool none = mode == "VALID";
      s.pad_begin.push_back(none ? 0 : pads[i]);
      s.pad_end.push_back(none ? 0 : pads[i + n]);
      out[i] = full - Dim(s.pad_begin[i] + s.pad_end[i]);
      continue;
    }
    out[i] = wanted;
    Dim total = full - wanted;
    int64_t cut = std::max<int64_t>(0, total.value.value_or(0));
    s.output_padding[i] += cut - total.value.value_or(0);  // rows behind all that is spread
    int64_t low = mode == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
    s.pad_begin.push_back(low);
    s.pad_end.push_back(cut - low);
  }
  return s;
}

Status transpose_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), w = node.input(1).type();
  if (!x.ranked || !w.ranked) return set_output(edit, node, 0, unranked(x.dtype));
  if (x.rank() < 3 || w.rank() != x.rank())
    return invalid(cat("expected x and w of one rank from 3, got ", x.rank(), " and ", w.rank()));
  Dims in = dims_of(x), kernel = dims_of(w), out;
  Dims spatial(in.begin() + 2, in.end()), taps(kernel.begin() + 2, kernel.end());
  TN_TRY(sizes, sizes_of(node, spatial, taps, out));
  (void)sizes;
  out.insert(out.begin(), {in[0], kernel[1] * Dim(node.attr_int("group", 1))});
  return set_output(edit, node, 0, x.dtype, out);
}

// As a Window over the output: output o = i*stride - pad + k*dilation. Leading axes have size 1.
Window window_over(const Sizes& s,
                   std::span<const int64_t> in,
                   std::span<const int64_t> kernel,
                   const Dims& out) {
  Window w;
  w.rank = in.size();
  for (size_t i = 0; i < w.rank; ++i) {
    size_t axis = kMaxSpatial - w.rank + i;
    w.in[axis] = std::max<int64_t>(0, out[i].value.value_or(0));
    w.out[axis] = in[i];
    w.kernel[axis] = kernel[i];
    w.stride[axis] = s.stride[i];
    w.dilation[axis] = s.dilation[i];
    w.pad_begin[axis] = s.pad_begin[i];
  }
  return w;
}

// y (one plane) += x (one plane) spread by one kernel.
template <class T>
void spread(const Window& w, const T* x, const T* kernel, double* y) {
  int64_t i = 0;
  for (int64_t d = 0; d < w.out[0]; ++d)
    for (int64_t h = 0; h < w.out[1]; ++h)
      for (int64_t v = 0; v < w.out[2]; ++v, ++i) {
        auto value = static_cast<double>(x[i]);
        for (int64_t k = 0; k < w.kernel_count(); ++k) {
          int64_t a = w.position(0, d, k / (w.kernel[1] * w.kernel[2]));
          int64_t b = w.position(1, h, k / w.kernel[2] % w.kernel[1]);
          int64_t c = w.position(2, v, k % w.kernel[2]);
          bool inside = a >= 0 && a < w.in[0] && b >= 0 && b < w.in[1] && c >= 0 && c < w.in[2];
          if (inside) y[(a * w.in[1] + b) * w.in[2] + c] += value * static_cast<double>(kernel[k]);
        }
      }
}

Status transpose_ref(const Call& call) {
  std::span<const int64_t> x = call.shape(0), w = call.shape(1);
  int64_t group = call.node().attr_int("group", 1);
  if (x.size() < 3 || x.size() > 2 + kMaxSpatial || w.size() != x.size())
    return invalid("expected x and w of one rank in 3..5");
  if (group < 1 || x[1] != w[0] || w[0] % group != 0)
    return invalid(cat("expected w with ", x[1], " inputs divisible by group, got ", w[0]));
  Dims out;
  std::span<const int64_t> spatial = x.subspan(2), taps = w.subspan(2);
  TN_TRY(sizes, sizes_of(call.node(), Dims(spatial.begin(), spatial.end()),
                         Dims(taps.begin(), taps.end()), out));
  Window window = window_over(sizes, spatial, taps, out);
  std::vector<int64_t> shape{x[0], w[1] * group};
  for (const Dim& dim : out)
    shape.push_back(std::max<int64_t>(0, dim.value.value_or(0)));
  TN_TRY(result, call.out(0, call.dtype(0), shape));
  int64_t channels = shape[1], in_group = x[1] / group;
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    auto planes = static_cast<uint64_t>(shape[0] * channels);
    parallel_for(call.ctx(), planes, 1, [&](uint64_t begin, uint64_t end) {
      std::vector<double> plane(static_cast<size_t>(window.in_count()));
      for (auto p = static_cast<int64_t>(begin); p < static_cast<int64_t>(end); ++p) {
        int64_t image = p / channels, o = p % channels, first = o / w[1] * in_group;
        double bias = call.has(2) ? static_cast<double>(call.data<T>(2)[o]) : 0;
        std::fill(plane.begin(), plane.end(), bias);
        for (int64_t c = first; c < first + in_group; ++c) {
          spread(window, call.data<T>(0) + (image * x[1] + c) * window.out_count(),
                 call.data<T>(1) + (c * w[1] + o % w[1]) * window.kernel_count(), plane.data());
        }
        T* y = data_of<T>(result) + p * window.in_count();
        for (size_t i = 0; i < plane.size(); ++i)
          y[i] = static_cast<T>(plane[i]);
      }
    });
    return {};
  });
}

Result<Node> transpose_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  auto rank = static_cast<size_t>(random.integer(1, 3));
  int64_t group = random.integer(1, 2), in = random.integer(1, 3), out = random.integer(1, 3);
  std::vector<int64_t> x{random.integer(1, 2), group * in}, w{group * in, out}, strides;
  std::vector<int64_t> pads(rank * 2, random.integer(0, 1));
  for (size_t i = 0; i < rank; ++i) {
    x.push_back(random.integer(3, 5));
    w.push_back(random.integer(2, 3));
    strides.push_back(random.integer(1, 3));
  }
  TN_TRY(a, random.input(TN_F32, x));
  TN_TRY(b, random.input(TN_F32, w));
  return edit.add({.type = "ConvTranspose",
                   .inputs = {a, b},
                   .attrs = {{"group", group}, {"strides", strides}, {"pads", pads}}});
}

OpCost transpose_cost(Node node) {
  Type x = node.input(0).type(), w = node.input(1).type();
  if (!x.is_static() || !w.is_static() || w.dims.empty() || w.dims[0] == 0) return {};
  return {2.0 * double(x.elements()) * double(w.elements() / w.dims[0]), node_bytes(node)};
}

// A convolution over the result would have further windows in an output_padding of a stride or
// more: it gets as much less padding at the ends, and where there is less than that, a dy without
// the rows that lie behind all windows. Gives that dy.
Value without_output_padding(Gradients& g, Value dy, Sizes& s) {
  const size_t n = s.stride.size();
  if (std::ranges::equal(s.output_padding, s.stride, std::less<>())) return dy;
  std::vector<int64_t> begins(n, 0), ends, axes;
  bool cuts = false;
  for (size_t i = 0; i < n; ++i) {
    const int64_t rest = s.pad_end[i] - s.output_padding[i];
    s.pad_end[i] = std::max<int64_t>(rest, 0);
    ends.push_back(rest < 0 ? rest : std::numeric_limits<int64_t>::max());
    axes.push_back(static_cast<int64_t>(2 + i));
    cuts = cuts || rest < 0;
  }
  return cuts ? g.op("Slice", {dy, g.ints(begins), g.ints(ends), g.ints(axes)}) : dy;
}

// It is a convolution's gradient, so its own gradients are a convolution and a weight gradient.
Status transpose_vjp(Gradients& g) {
  Node node = g.of();
  const bool by_sizes = !node.attr_ints("output_shape").empty() ||
                        node.attr_text("auto_pad", "NOTSET").starts_with("SAME");
  auto sizes = [&](uint64_t i) {
    Type type = by_sizes ? g.fixed(g.in(i), "ConvTranspose") : g.ranked(g.in(i), "ConvTranspose");
    Dims dims = dims_of(type);
    return Dims(dims.begin() + std::min<std::ptrdiff_t>(2, std::ssize(dims)), dims.end());
  };
  Dims in = sizes(0), kernel = sizes(1), out;
  TN_CHECK(g.status());
  TN_TRY(found, sizes_of(node, in, kernel, out));
  Value dy = g.cotangent(), read = without_output_padding(g, dy, found);
  std::vector<int64_t> pads = found.pad_begin;
  pads.insert(pads.end(), found.pad_end.begin(), found.pad_end.end());
  std::vector<Attr> attributes = conv_attributes(node);
  std::erase_if(attributes, [](const Attr& a) { return a.name == "pads" || a.name == "auto_pad"; });
  attributes.emplace_back("pads", pads);
  if (g.wanted(0)) g.set(0, g.op("Conv", {read, g.in(1)}, attributes));
  if (g.wanted(1)) {
    Node made = g.node({.type = "ConvWeightGrad",
                        .inputs = {read, g.in(0), g.shape_of(g.in(1))},
                        .attrs = attributes,
                        .domain = "tenon"});
    if (made) g.set(1, made.output());
  }
  if (g.wanted(2)) g.set(2, bias_gradient(g, dy));
  return {};
}

constexpr tn_op kConvTranspose = op_row(
    {.type = "ConvTranspose",
     .since = 22,
     .axes = "n (g c) s.., (g c) o k.., (g o)? -> n (g o) s'.. ; g = group",
     .attributes = "[" TENON_WINDOW_ATTRIBUTES R"(,{"name": "group", "type": "int", "default": 1},
                    {"name": "kernel_shape", "type": "ints"},
                    {"name": "output_padding", "type": "ints"},
                    {"name": "output_shape", "type": "ints"}])",
     .quant = "compute act=0 weight=1 bias=2 axis=1",
     .shape =
         shape<transpose_shape,
               "x: T[n (g c) s..], w: T[(g c) o s'..], bias: T[(g o)]? ; g = group, T = float">,
     .cost = cost<transpose_cost>,
     .ref = ref<transpose_ref>,
     .sample = sample<transpose_sample>,
     .vjp = vjp<transpose_vjp>,
     .vjp_inputs = 3,
     .vjp_outputs = 0,
     .batch = batch<batch_convolution>,
     .cast = "cpu=low cuda=low"});

}  // namespace

TENON_OPS(conv_transpose, &kConvTranspose)

}  // namespace tenon::ops
