// SPDX-License-Identifier: Apache-2.0
// tenon:ConvInputGrad(dy, w, shape of x) and tenon:ConvWeightGrad(x, dy, shape of w): the backward
// primitives of Conv, with the attributes of the convolution that they belong to. With Conv they
// are closed under gradients: each is linear in both operands, and its gradients are the other two.
#include "batching_rules.hpp"
#include "cells.hpp"
#include "convolve.hpp"
#include "cost.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// The result is x or w of the convolution whose other operands are given.
Status check_grad(Node node, const Dims& result) {
  bool of_input = node.type() == "ConvInputGrad";
  Type dy = node.input(of_input ? 0 : 1).type(), other = node.input(of_input ? 1 : 0).type();
  if (!dy.ranked || !other.ranked) return {};
  if (result.size() != other.rank() || result.size() != dy.rank() || result.size() < 3)
    return invalid(cat("shape: expected ", dy.rank(), " sizes from 3, got ", result.size()));
  Dims x = of_input ? result : dims_of(other), w = of_input ? dims_of(other) : result;
  Dims y = dims_of(dy), channels{y[0], w[1] * Dim(node.attr_int("group", 1)), w[0]};
  const Dims stated{x[0], x[1], y[1]};
  for (size_t i = 0; i < 3; ++i)
    if (stated[i].known() && channels[i].known() && !(stated[i] == channels[i]))
      return invalid(cat("shape: expected samples and channels that fit, got ", *stated[i].value,
                         " for ", *channels[i].value));
  auto spatial = [](const Dims& all) { return Dims(all.begin() + 2, all.end()); };
  return expect_window(node, spatial(x), spatial(w), spatial(y));
}

Status grad_shape(EditView edit, Node node) {
  std::optional<Dims> dims = contents(node.input(2));
  uint32_t dtype = node.input(0).dtype();
  if (dims) TN_CHECK(check_grad(node, *dims));
  return set_output(edit, node, 0, dims ? type_of(dtype, *dims) : unranked(dtype));
}

// visit(index in x, index in w, index in y) for every product of one pair of channels of an image.
template <class Visit>
void for_each_product(const ConvSizes& s, int64_t image, int64_t o, int64_t c, const Visit& visit) {
  const Window& w = s.window;
  int64_t group = o / s.out_channels;
  int64_t x = ((image * s.groups + group) * s.in_channels + c) * w.in_count();
  int64_t y = (image * s.groups * s.out_channels + o) * w.out_count();
  for (int64_t tap = 0; tap < w.kernel_count(); ++tap) {
    Window::Sizes k{tap / (w.kernel[1] * w.kernel[2]), tap / w.kernel[2] % w.kernel[1],
                    tap % w.kernel[2]};
    for (int64_t row = 0; row < w.out[0] * w.out[1]; ++row) {
      int64_t d = w.position(0, row / w.out[1], k[0]), h = w.position(1, row % w.out[1], k[1]);
      if (d < 0 || d >= w.in[0] || h < 0 || h >= w.in[1]) continue;
      for (int64_t j = 0; j < w.out[2]; ++j) {
        int64_t v = w.position(2, j, k[2]);
        if (v < 0 || v >= w.in[2]) continue;
        visit(x + (d * w.in[1] + h) * w.in[2] + v, (o * s.in_channels + c) * w.kernel_count() + tap,
              y + row * w.out[2] + j);
      }
    }
  }
}

Status check_dy(const ConvSizes& s, std::span<const int64_t> dy) {
  std::vector<int64_t> expected = conv_out_shape(s);
  if (std::equal(dy.begin(), dy.end(), expected.begin(), expected.end())) return {};
  return invalid("dy: expected the shape of the convolution's output");
}

Status input_grad_ref(const Call& call) {
  TN_TRY(x, read_shape(call.in(2), "shape"));
  TN_TRY(found, conv_sizes(call.node(), x, call.shape(1)));
  const ConvSizes& s = found;
  TN_CHECK(check_dy(s, call.shape(0)));
  TN_TRY(out, call.out(0, call.dtype(0), x));
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    const T *dy = call.data<T>(0), *w = call.data<T>(1);
    auto planes = static_cast<uint64_t>(s.batch * s.groups * s.in_channels);
    parallel_for(call.ctx(), planes, 1, [&](uint64_t begin, uint64_t end) {
      for (auto p = static_cast<int64_t>(begin); p < static_cast<int64_t>(end); ++p) {
        int64_t c = p % s.in_channels, group = p / s.in_channels % s.groups;
        int64_t image = p / s.in_channels / s.groups, first = p * s.window.in_count();
        std::vector<double> sums(static_cast<size_t>(s.window.in_count()));
        for (int64_t o = group * s.out_channels; o < (group + 1) * s.out_channels; ++o)
          for_each_product(s, image, o, c, [&](int64_t at, int64_t weight, int64_t y) {
            sums[static_cast<size_t>(at - first)] +=
                static_cast<double>(w[weight]) * static_cast<double>(dy[y]);
          });
        for (size_t i = 0; i < sums.size(); ++i)
          data_of<T>(out)[first + static_cast<int64_t>(i)] = static_cast<T>(sums[i]);
      }
    });
    return {};
  });
}

Status weight_grad_ref(const Call& call) {
  TN_TRY(w, read_shape(call.in(2), "shape"));
  TN_TRY(found, conv_sizes(call.node(), call.shape(0), w));
  const ConvSizes& s = found;
  TN_CHECK(check_dy(s, call.shape(1)));
  TN_TRY(out, call.out(0, call.dtype(0), w));
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    const T *x = call.data<T>(0), *dy = call.data<T>(1);
    auto pairs = static_cast<uint64_t>(s.groups * s.out_channels * s.in_channels);
    parallel_for(call.ctx(), pairs, 1, [&](uint64_t begin, uint64_t end) {
      for (auto p = static_cast<int64_t>(begin); p < static_cast<int64_t>(end); ++p) {
        int64_t first = p * s.window.kernel_count();
        std::vector<double> sums(static_cast<size_t>(s.window.kernel_count()));
        for (int64_t image = 0; image < s.batch; ++image)
          for_each_product(s, image, p / s.in_channels, p % s.in_channels,
                           [&](int64_t at, int64_t weight, int64_t y) {
                             sums[static_cast<size_t>(weight - first)] +=
                                 static_cast<double>(x[at]) * static_cast<double>(dy[y]);
                           });
        for (size_t i = 0; i < sums.size(); ++i)
          data_of<T>(out)[first + static_cast<int64_t>(i)] = static_cast<T>(sums[i]);
      }
    });
    return {};
  });
}

Value relative(Gradients& g, std::string_view type, Value a, Value b, Value of) {
  if (type == "Conv") return g.op("Conv", {a, b}, conv_attributes(g.of()));
  Node node = g.node({.type = type,
                      .inputs = {a, b, g.shape_of(of)},
                      .attrs = conv_attributes(g.of()),
                      .domain = "tenon"});
  return node ? node.output() : Value{};
}
Status input_grad_vjp(Gradients& g) {
  Value dx = g.cotangent();
  if (g.wanted(0)) g.set(0, relative(g, "Conv", dx, g.in(1), {}));
  if (g.wanted(1)) g.set(1, relative(g, "ConvWeightGrad", dx, g.in(0), g.in(1)));
  return {};
}
Status weight_grad_vjp(Gradients& g) {
  Value dw = g.cotangent();
  if (g.wanted(0)) g.set(0, relative(g, "ConvInputGrad", g.in(1), dw, g.in(0)));
  if (g.wanted(1)) g.set(1, relative(g, "Conv", g.in(0), dw, {}));
  return {};
}

Result<Node> grad_sample(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  auto rank = static_cast<size_t>(random.integer(1, 3));
  int64_t group = random.integer(1, 2), in = random.integer(1, 2), out = random.integer(1, 2);
  std::vector<int64_t> x{random.integer(1, 2), group * in}, w{group * out, in};
  std::vector<int64_t> strides, dilations, pads(rank * 2);
  for (size_t i = 0; i < rank; ++i) {
    w.push_back(random.integer(1, 3));
    x.push_back(random.integer(5, 6));
    strides.push_back(random.integer(1, 2));
    dilations.push_back(random.integer(1, 2));
    pads[i] = random.integer(0, 1);
    pads[i + rank] = random.integer(0, 1);
  }
  TN_TRY(a, random.input(TN_F32, x));
  TN_TRY(b, random.input(TN_F32, w));
  std::vector<Attr> attrs{
      {"group", group}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  TN_TRY(conv, edit.op("Conv", {a, b}, attrs));
  TN_TRY(dy, random.input(TN_F32, conv.type().dims));
  bool of_input = type == "ConvInputGrad";
  TN_TRY(shape, edit.ints(of_input ? x : w));
  return edit.add({.type = type,
                   .inputs = {of_input ? dy : a, of_input ? b : dy, shape},
                   .attrs = attrs,
                   .domain = "tenon"});
}
Result<Node> input_grad_sample(EditView edit, uint64_t seed) {
  return grad_sample(edit, seed, "ConvInputGrad");
}
Result<Node> weight_grad_sample(EditView edit, uint64_t seed) {
  return grad_sample(edit, seed, "ConvWeightGrad");
}

// Examples are more images where the weights are shared, else groups of their own.
Status grad_batch(Batching& b) {
  int64_t n = known_example_count(b);
  TN_TRY(shape, stated_ints(b, 2));
  if (n < 0 || shape.size() < 2) return unsupported("a count of examples that is not known");
  bool of_input = b.of().type() == "ConvInputGrad";
  bool rows = of_input && !b.batched(1);
  shape[rows || !of_input ? 0 : 1] *= n;
  Value first = rows ? examples_as_rows(b, 0) : examples_as_groups(b, 0);
  Value second = rows ? b.in(1) : of_input ? examples_as_rows(b, 1) : examples_as_groups(b, 1);
  Node made = again(b, b.of(), {first, second, b.ints(shape)},
                    {{"group", b.of().attr_int("group", 1) * (rows ? 1 : n)}});
  if (!made) return {};
  bool as_rows = rows || !of_input;
  b.set(0, as_rows ? rows_as_examples(b, made.output()) : groups_as_examples(b, made.output()));
  return {};
}

// As many products as the convolution itself.
OpCost grad_cost(Node node) {
  bool of_input = node.type() == "ConvInputGrad";
  Type w = (of_input ? node.input(1) : node.output()).type();
  Type dy = node.input(of_input ? 0 : 1).type();
  if (!w.is_static() || !dy.is_static() || w.dims.empty() || w.dims[0] == 0) return {};
  return {2.0 * double(dy.elements()) * double(w.elements() / w.dims[0]), node_bytes(node)};
}

constexpr const char* kAttributes =
    "[" TENON_WINDOW_ATTRIBUTES R"(,{"name": "group", "type": "int", "default": 1},
                                    {"name": "kernel_shape", "type": "ints"}])";
constexpr tn_op kInputGrad = op_row(
    {.type = "ConvInputGrad",
     .domain = "tenon",
     .attributes = kAttributes,
     .shape =
         shape<grad_shape, "dy: T[n (g o) s..], w: T[(g o) c s'..], shape: int[_] ; g = group">,
     .cost = cost<grad_cost>,
     .ref = ref<input_grad_ref>,
     .sample = sample<input_grad_sample>,
     .vjp = vjp<input_grad_vjp>,
     .vjp_inputs = 3,
     .vjp_outputs = 0,
     .batch = batch<grad_batch>,
     .cast = "cpu=low cuda=low"});
constexpr tn_op kWeightGrad = op_row(
    {.type = "ConvWeightGrad",
     .domain = "tenon",
     .attributes = kAttributes,
     .shape =
         shape<grad_shape, "x: T[n (g c) s..], dy: T[n (g o) s'..], shape: int[_] ; g = group">,
     .cost = cost<grad_cost>,
     .ref = ref<weight_grad_ref>,
     .sample = sample<weight_grad_sample>,
     .vjp = vjp<weight_grad_vjp>,
     .vjp_inputs = 3,
     .vjp_outputs = 0,
     .batch = batch<grad_batch>,
     .cast = "cpu=low cuda=low"});

}  // namespace

TENON_OPS(conv_grad, &kInputGrad, &kWeightGrad)

}  // namespace tenon::ops
