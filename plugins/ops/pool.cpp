// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool and LpPool: windows that slide over each channel.
#include <algorithm>
#include <limits>

#include "cells.hpp"
#include "cost.hpp"
#include "dispatch.hpp"
#include "pool_decompose.hpp"
#include "sampling.hpp"
#include "window.hpp"

namespace tenon::ops {
namespace {

Status pool_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, unranked(x.dtype));
  const std::vector<int64_t> sizes = node.attr_ints("kernel_shape");
  Dims in = dims_of(x), kernel(sizes.begin(), sizes.end());
  if (in.size() < 3) return invalid(cat("x: expected rank from 3, got ", in.size()));
  TN_TRY(spatial, window_dims(node, Dims(in.begin() + 2, in.end()), kernel));
  TN_CHECK(expect_taps_inside(node, Dims(in.begin() + 2, in.end()), kernel));
  spatial.insert(spatial.begin(), {in[0], in[1]});
  TN_CHECK(set_output(edit, node, 0, x.dtype, spatial));
  return set_output(edit, node, 1, TN_I64, spatial);
}

struct Pooling {
  Window window;
  int64_t planes;
  std::vector<int64_t> out_shape;
};

Result<Pooling> pooling_of(const Call& call) {
  std::span<const int64_t> x = call.shape(0);
  if (x.size() < 3) return invalid(cat("x: expected rank from 3, got ", x.size()));
  const std::vector<int64_t> kernel = call.node().attr_ints("kernel_shape");
  TN_TRY(window, window_of(call.node(), x.subspan(2), kernel));
  TN_CHECK(expect_taps_inside(window));
  Pooling p{window, x[0] * x[1], {x[0], x[1]}};
  for (int64_t size : window.out_shape())
    p.out_shape.push_back(size);
  return p;
}

// visit(tap's index in the plane) for every tap inside the input; returns how many taps lie in the
// input or its stated padding.
template <class Visit>
int64_t for_each_tap(const Window& w, const Window::Sizes& o, const Visit& visit) {
  int64_t counted = 0;
  for (int64_t tap = 0; tap < w.kernel_count(); ++tap) {
    Window::Sizes k{tap / (w.kernel[1] * w.kernel[2]), tap / w.kernel[2] % w.kernel[1],
                    tap % w.kernel[2]};
    Window::Sizes at{};
    bool inside = true, in_padding = true;
    for (size_t axis = 0; axis < kMaxSpatial; ++axis) {
      at[axis] = w.position(axis, o[axis], k[axis]);
      inside = inside && at[axis] >= 0 && at[axis] < w.in[axis];
      in_padding = in_padding && at[axis] < w.in[axis] + w.pad_end[axis];
    }
    counted += in_padding;
    if (inside) visit((at[0] * w.in[1] + at[1]) * w.in[2] + at[2]);
  }
  return counted;
}

// body(output's index, input plane's offset, output coordinate)
template <class Body>
void for_each_output(const Call& call, const Pooling& p, const Body& body) {
  const Window& w = p.window;
  parallel_for(call.ctx(), static_cast<uint64_t>(p.planes), 1, [&](uint64_t begin, uint64_t end) {
    for (auto plane = static_cast<int64_t>(begin); plane < static_cast<int64_t>(end); ++plane) {
      int64_t at = plane * w.out_count();
      for (int64_t d = 0; d < w.out[0]; ++d)
        for (int64_t h = 0; h < w.out[1]; ++h)
          for (int64_t x = 0; x < w.out[2]; ++x)
            body(at++, plane * w.in_count(), Window::Sizes{d, h, x});
    }
  });
}

// Position in the plane with the first spatial axis fastest (storage_order 1).
int64_t column_major(const Window& w, int64_t at) {
  int64_t d = at / (w.in[1] * w.in[2]), h = at / w.in[2] % w.in[1], x = at % w.in[2];
  if (w.rank == 3) return d + w.in[0] * (h + w.in[1] * x);
  return w.rank == 2 ? h + w.in[1] * x : x;
}

Status max_pool_ref(const Call& call) {
  TN_TRY(p, pooling_of(call));
  TN_TRY(out, call.out(0, call.dtype(0), p.out_shape));
  int64_t* indices = nullptr;
  if (call.node().n_outputs() > 1) {
    TN_TRY(second, call.out(1, TN_I64, p.out_shape));
    indices = data_of<int64_t>(second);
  }
  bool by_column = call.node().attr_int("storage_order") != 0;
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    const T* x = call.data<T>(0);
    using W = Wide<T>;
    for_each_output(call, p, [&](int64_t to, int64_t plane, const Window::Sizes& o) {
      int64_t best = -1;
      W most = kIsFloat<T> ? static_cast<W>(-HUGE_VAL) : std::numeric_limits<W>::lowest();
      for_each_tap(p.window, o, [&](int64_t at) {
        auto value = static_cast<W>(x[plane + at]);
        if (best < 0 || value > most || (value != value && most == most)) {
          most = value;
          best = at;
        }
      });
      data_of<T>(out)[to] = static_cast<T>(most);
      if (indices) indices[to] = plane + (by_column ? column_major(p.window, best) : best);
    });
    return {};
  });
}

Status average_pool_ref(const Call& call) {
  TN_TRY(p, pooling_of(call));
  TN_TRY(out, call.out(0, call.dtype(0), p.out_shape));
  bool with_padding = call.node().attr_int("count_include_pad") != 0;
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    const T* x = call.data<T>(0);
    for_each_output(call, p, [&](int64_t to, int64_t plane, const Window::Sizes& o) {
      double sum = 0;
      int64_t inside = 0;
      int64_t all = for_each_tap(p.window, o, [&](int64_t at) {
        sum += static_cast<double>(x[plane + at]);
        ++inside;
      });
      data_of<T>(out)[to] = static_cast<T>(sum / static_cast<double>(with_padding ? all : inside));
    });
    return {};
  });
}

Status lp_pool_ref(const Call& call) {
  TN_TRY(p, pooling_of(call));
  TN_TRY(out, call.out(0, call.dtype(0), p.out_shape));
  auto power = static_cast<double>(call.node().attr_int("p", 2));
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    const T* x = call.data<T>(0);
    for_each_output(call, p, [&](int64_t to, int64_t plane, const Window::Sizes& o) {
      double sum = 0;
      for_each_tap(p.window, o, [&](int64_t at) {
        sum += std::pow(std::fabs(static_cast<double>(x[plane + at])), power);
      });
      data_of<T>(out)[to] = static_cast<T>(std::pow(sum, 1 / power));
    });
    return {};
  });
}

// The pool that a gradient belongs to, for another node.
std::vector<Attr> pool_attributes(Node node) {
  std::vector<Attr> attrs;
  for (const char* name : {"kernel_shape", "strides", "dilations", "pads", "auto_pad", "ceil_mode",
                           "count_include_pad"})
    if (node.attr(name).tag != TN_ANY_NONE) attrs.emplace_back(name, node.attr(name));
  return attrs;
}
// MaxPoolGrad(dy, x), AveragePoolGrad(dy, shape of x).
Status pool_vjp(Gradients& g) {
  if (!g.cotangent()) return {};
  bool most = g.of().is("MaxPool");
  Node made = g.node({.type = most ? "MaxPoolGrad" : "AveragePoolGrad",
                      .inputs = {g.cotangent(), most ? g.in(0) : g.shape_of(g.in(0))},
                      .attrs = pool_attributes(g.of()),
                      .domain = "tenon"});
  if (made) g.set(0, made.output());
  return {};
}

Status max_grad_shape(EditView edit, Node node) {
  Type x = node.input(1).type();
  if (x.ranked) TN_CHECK(expect_pool_of(node, dims_of(x)));
  return set_output(edit, node, 0, node.input(1).type());
}
Status average_grad_shape(EditView edit, Node node) {
  std::optional<Dims> x = contents(node.input(1));
  uint32_t dtype = node.input(0).dtype();
  if (x) TN_CHECK(expect_pool_of(node, *x));
  return set_output(edit, node, 0, x ? type_of(dtype, *x) : unranked(dtype));
}

// The pool's input, whose sizes may be numbers that a run was given, against what comes back.
Result<Window> window_of_grad(const Call& call, std::span<const int64_t> x) {
  constexpr int64_t kMostSide = int64_t{1} << 31;
  std::span<const int64_t> dy = call.shape(0);
  const bool is_like_dy = x.size() >= 3 && x.size() == dy.size() && x[0] == dy[0] && x[1] == dy[1];
  const bool has_sizes =
      std::all_of(x.begin(), x.end(), [](int64_t size) { return size >= 0 && size <= kMostSide; });
  if (!is_like_dy || !has_sizes)
    return invalid("x: expected the shape of the pool's input, whose outputs dy has");
  TN_TRY(window, window_of(call.node(), x.subspan(2), call.node().attr_ints("kernel_shape")));
  const std::vector<int64_t> out = window.out_shape();
  if (!std::equal(out.begin(), out.end(), dy.begin() + 2, dy.end()))
    return invalid("dy: expected the shape of the pool's output");
  return window;
}

// add(output's index, input plane's offset, output coordinate, to): spreads one gradient.
template <class Add>
Status spread_ref(const Call& call, const std::vector<int64_t>& x, const Add& add) {
  std::span<const int64_t> shape(x);
  TN_TRY(window, window_of_grad(call, shape));
  Pooling p{window, x[0] * x[1], {}};
  TN_TRY(out, call.out(0, call.dtype(0), x));
  std::vector<double> sums(static_cast<size_t>(element_count(shape)));
  for_each_output(call, p, [&](int64_t to, int64_t plane, const Window::Sizes& o) {
    add(p.window, to, plane, o, sums.data());
  });
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    std::transform(sums.begin(), sums.end(), data_of<T>(out),
                   [](double sum) { return static_cast<T>(sum); });
    return {};
  });
}
Status max_grad_ref(const Call& call) {
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    const T *dy = call.data<T>(0), *x = call.data<T>(1);
    return spread_ref(
        call, {call.shape(1).begin(), call.shape(1).end()},
        [&](const Window& w, int64_t to, int64_t plane, const Window::Sizes& o, double* sums) {
          int64_t best = -1;
          double most = -HUGE_VAL;
          for_each_tap(w, o, [&](int64_t at) {
            auto value = static_cast<double>(x[plane + at]);
            bool beats = value > most || (value != value && most == most);
            if (best >= 0 && !beats) return;
            most = value;
            best = at;
          });
          if (best >= 0) sums[plane + best] += static_cast<double>(dy[to]);
        });
  });
}
Status average_grad_ref(const Call& call) {
  bool with_padding = call.node().attr_int("count_include_pad") != 0;
  TN_TRY(shape, read_shape(call.in(1), "x"));
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    const T* dy = call.data<T>(0);
    return spread_ref(
        call, shape,
        [&](const Window& w, int64_t to, int64_t plane, const Window::Sizes& o, double* sums) {
          int64_t inside = 0;
          int64_t all = for_each_tap(w, o, [&](int64_t) { ++inside; });
          double each =
              static_cast<double>(dy[to]) / static_cast<double>(with_padding ? all : inside);
          for_each_tap(w, o, [&](int64_t at) { sums[plane + at] += each; });
        });
  });
}
// The gradient of a gradient by dy: what the pool took, taken again.
Status max_grad_vjp(Gradients& g) {
  if (!g.wanted(0)) return {};
  std::vector<Attr> attrs = pool_attributes(g.of());
  Node pool = g.node({.type = "MaxPool", .inputs = {g.in(1)}, .attrs = attrs, .n_outputs = 2});
  if (!pool) return {};
  Value flat = g.reshape(g.cotangent(), {-1});
  g.set(0, g.op("Gather", {flat, pool.output(1)}));
  return {};
}
Status average_grad_vjp(Gradients& g) {
  g.set(0, g.op("AveragePool", {g.cotangent()}, pool_attributes(g.of())));
  return {};
}

Result<Node> pool_sample(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  auto rank = static_cast<size_t>(random.integer(1, 3));
  std::vector<int64_t> x{random.integer(1, 2), random.integer(1, 3)}, kernel, strides;
  std::vector<int64_t> pads(rank * 2), dilations;
  for (size_t i = 0; i < rank; ++i) {
    x.push_back(random.integer(5, 8));
    kernel.push_back(random.integer(2, 3));
    strides.push_back(random.integer(1, 2));
    dilations.push_back(random.integer(1, 2));
    pads[i] = random.integer(0, 1);
    pads[i + rank] = random.integer(0, 1);
  }
  TN_TRY(in, random.input(TN_F32, x));
  return edit.add({.type = type,
                   .inputs = {in},
                   .attrs = {{"kernel_shape", kernel},
                             {"strides", strides},
                             {"dilations", dilations},
                             {"pads", pads},
                             {"ceil_mode", random.integer(0, 1)}}});
}
Result<Node> max_pool_sample(EditView edit, uint64_t seed) {
  return pool_sample(edit, seed, "MaxPool");
}
Result<Node> average_pool_sample(EditView edit, uint64_t seed) {
  return pool_sample(edit, seed, "AveragePool");
}
Result<Node> lp_pool_sample(EditView edit, uint64_t seed) {
  return pool_sample(edit, seed, "LpPool");
}

// The gradient of a sampled pool.
Result<Node> pool_grad_sample(EditView edit, uint64_t seed, bool most) {
  TN_TRY(pool, pool_sample(edit, seed, most ? "MaxPool" : "AveragePool"));
  TN_TRY(dy, edit.input("dy", pool.output().type()));
  Builder b(edit);
  Node made = b.node({.type = most ? "MaxPoolGrad" : "AveragePoolGrad",
                      .inputs = {dy, most ? pool.input(0) : b.shape_of(pool.input(0))},
                      .attrs = pool_attributes(pool),
                      .domain = "tenon"});
  TN_CHECK(b.status());
  return made;
}
Result<Node> max_grad_sample(EditView edit, uint64_t seed) {
  return pool_grad_sample(edit, seed, true);
}
Result<Node> average_grad_sample(EditView edit, uint64_t seed) {
  return pool_grad_sample(edit, seed, false);
}

OpCost pool_cost(Node node) {
  double taps = 1;
  for (int64_t size : node.attr_ints("kernel_shape"))
    taps *= static_cast<double>(size);
  return {taps * output_elements(node), node_bytes(node)};
}

#define POOL_ATTRIBUTES                                                                 \
  "[" TENON_WINDOW_ATTRIBUTES R"(,{"name": "ceil_mode", "type": "int", "default": 0},)" \
  R"({"name": "kernel_shape", "type": "ints"})"

constexpr tn_op kMaxPool = op_row(
    {.type = "MaxPool",
     .since = 22,
     .axes = "n c s.. -> n c s'.., n c s'..?",
     .attributes = POOL_ATTRIBUTES R"(,{"name": "storage_order", "type": "int", "default": 0}])",
     .quant = "same_scale",
     .shape = shape<pool_shape, "x: float|i8|u8[n c s..]">,
     .cost = cost<pool_cost>,
     .ref = ref<max_pool_ref>,
     .sample = sample<max_pool_sample>,
     .vjp = vjp<pool_vjp>,
     .vjp_inputs = 1,
     .vjp_outputs = 0,
     .batch = batch<max_pool_batch>});
constexpr tn_op kAveragePool =
    op_row({.type = "AveragePool",
            .since = 22,
            .axes = "n c s.. -> n c s'..",
            .attributes =
                POOL_ATTRIBUTES R"(,{"name": "count_include_pad", "type": "int", "default": 0}])",
            .quant = "requant",
            .shape = shape<pool_shape, "x: float[n c s..]">,
            .cost = cost<pool_cost>,
            .ref = ref<average_pool_ref>,
            .sample = sample<average_pool_sample>,
            .vjp = vjp<pool_vjp>,
            .vjp_inputs = 0,
            .vjp_outputs = 0});
constexpr tn_op kLpPool =
    op_row({.type = "LpPool",
            .since = 22,
            .axes = "n c s.. -> n c s'..",
            .attributes = POOL_ATTRIBUTES R"(,{"name": "p", "type": "int", "default": 2}])",
            .shape = shape<pool_shape, "x: float[n c s..]">,
            .decompose = decompose<lp_pool_decompose>,
            .cost = cost<pool_cost>,
            .ref = ref<lp_pool_ref>,
            .sample = sample<lp_pool_sample>});

constexpr tn_op kMaxPoolGrad =
    op_row({.type = "MaxPoolGrad",
            .domain = "tenon",
            .axes = "n c o.., n c s.. -> n c s..",
            .attributes = POOL_ATTRIBUTES R"(])",
            .shape = shape<max_grad_shape, "dy: T[n c s'..], x: T[n c s..]">,
            .ref = ref<max_grad_ref>,
            .sample = sample<max_grad_sample>,
            .vjp = vjp<max_grad_vjp>,
            .vjp_inputs = 2,
            .vjp_outputs = 0});
constexpr tn_op kAveragePoolGrad =
    op_row({.type = "AveragePoolGrad",
            .domain = "tenon",
            .attributes =
                POOL_ATTRIBUTES R"(,{"name": "count_include_pad", "type": "int", "default": 0}])",
            .shape = shape<average_grad_shape, "dy: any[n c s..], shape: int[_]">,
            .ref = ref<average_grad_ref>,
            .sample = sample<average_grad_sample>,
            .vjp = vjp<average_grad_vjp>,
            .vjp_inputs = 0,
            .vjp_outputs = 0,
            .batch = batch<average_grad_batch>});

}  // namespace

TENON_OPS(pool, &kMaxPool, &kAveragePool, &kLpPool, &kMaxPoolGrad, &kAveragePoolGrad)

}  // namespace tenon::ops
