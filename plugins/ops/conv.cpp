// SPDX-License-Identifier: Apache-2.0
// Conv in one to three spatial dimensions.
#include "tenon/wrapping.hpp"

#include "batching_rules.hpp"
#include "convolve.hpp"
#include "cost.hpp"
#include "dispatch.hpp"
#include "example_norms.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status shape_of_conv(EditView edit, Node node) {
  return conv_shape(edit, node, 1, node.input(0).dtype());
}

Status conv_ref(const Call& call) {
  TN_TRY(sizes, conv_sizes(call.node(), call.shape(0), call.shape(1)));
  TN_TRY(out, call.out(0, call.dtype(0), conv_out_shape(sizes)));
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    const T *x = call.data<T>(0), *w = call.data<T>(1);
    const T* bias = call.has(2) ? call.data<T>(2) : nullptr;
    T* y = data_of<T>(out);
    using Acc = Wide<T>;
    convolve<Acc>(
        call.ctx(), sizes, [x](int64_t i) { return static_cast<Acc>(x[i]); },
        [w](int64_t i, int64_t) { return static_cast<Acc>(w[i]); },
        [y, bias](int64_t i, int64_t channel, Acc sum) {
          y[i] = static_cast<T>(bias ? wrapping_add(sum, static_cast<Acc>(bias[channel])) : sum);
        });
    return {};
  });
}

Result<Node> conv_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  auto rank = static_cast<size_t>(random.integer(1, 3));
  int64_t group = random.integer(1, 3), in = random.integer(1, 3), out = random.integer(1, 4);
  std::vector<int64_t> x{random.integer(1, 2), group * in}, w{group * out, in};
  std::vector<int64_t> strides, dilations, pads(rank * 2);
  for (size_t i = 0; i < rank; ++i) {
    w.push_back(random.integer(1, 3));
    x.push_back(random.integer(6, 9));
    strides.push_back(random.integer(1, 2));
    dilations.push_back(random.integer(1, 2));
    pads[i] = random.integer(0, 2);
    pads[i + rank] = random.integer(0, 2);
  }
  TN_TRY(a, random.input(TN_F32, x));
  TN_TRY(b, random.input(TN_F32, w));
  std::vector<Value> inputs{a, b};
  if (random.coin()) {
    TN_TRY(bias, random.input(TN_F32, {group * out}));
    inputs.push_back(bias);
  }
  std::vector<Attr> attrs{{"group", group}, {"strides", strides}, {"dilations", dilations}};
  if (random.coin()) {
    attrs.emplace_back("pads", pads);
  } else {
    attrs.emplace_back("auto_pad", random.coin() ? "SAME_UPPER" : "SAME_LOWER");
  }
  return edit.add({.type = "Conv", .inputs = inputs, .attrs = attrs});
}

Status conv_vjp(Gradients& g) {
  Value dy = g.cotangent();
  auto gradient = [&](std::string_view type, Value a, Value b, Value of) {
    Node node = g.node({.type = type,
                        .inputs = {a, b, g.shape_of(of)},
                        .attrs = conv_attributes(g.of()),
                        .domain = "tenon"});
    return node ? node.output() : Value{};
  };
  if (g.wanted(0)) g.set(0, gradient("ConvInputGrad", dy, g.in(1), g.in(0)));
  if (g.wanted(1)) g.set(1, gradient("ConvWeightGrad", g.in(0), dy, g.in(1)));
  if (g.wanted(2)) g.set(2, bias_gradient(g, dy));
  return {};
}

// Beyond ONNX's types it takes integers: what ConvInteger is made of.
constexpr tn_op kConv = op_row(
    {.type = "Conv",
     .since = 22,
     .axes = "n (g c) s.., (g o) c k.., (g o)? -> n (g o) s'.. ; g = group",
     .attributes = "[" TENON_WINDOW_ATTRIBUTES R"(,{"name": "group", "type": "int", "default": 1},
                    {"name": "kernel_shape", "type": "ints"}])",
     .quant = "compute act=0 weight=1 bias=2 axis=0",
     .shape = shape<shape_of_conv,
                    "x: T[n (g c) s..], w: T[(g o) c s'..], bias: T[(g o)]? ; g = group, "
                    "T = number">,
     .cost = cost<[](Node node) { return OpCost{conv_flops(node, 1), node_bytes(node)}; }>,
     .ref = ref<conv_ref>,
     .sample = sample<conv_sample>,
     .vjp = vjp<conv_vjp>,
     .vjp_inputs = 3,
     .vjp_outputs = 0,
     .batch = batch<batch_convolution>,
     .cast = "cpu=low cuda=low",
     .example_norms = example_norms<conv_example_norms>});

}  // namespace

TENON_OPS(conv, &kConv)

}  // namespace tenon::ops
