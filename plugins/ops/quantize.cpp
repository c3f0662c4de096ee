// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: per tensor, per axis, or in blocks.
#include <algorithm>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

uint32_t dtype_attr(Node node, std::string_view name) {
  tn_any any = node.attr(name);
  return any.tag == TN_ANY_DTYPE ? static_cast<uint32_t>(any.v.u) : TN_DTYPE_NONE;
}

uint32_t quantized_dtype(Node node) {
  uint32_t stated = dtype_attr(node, "output_dtype");
  if (node.input(2)) return node.input(2).dtype();
  return stated == TN_DTYPE_NONE ? TN_U8 : stated;
}
uint32_t real_dtype(Node node) {
  uint32_t stated = dtype_attr(node, "output_dtype");
  return stated == TN_DTYPE_NONE ? node.input(1).dtype() : stated;
}

// Which scale belongs to element i of x.
class ScaleIndex {
 public:
  static Result<ScaleIndex> of(Node node,
                               std::span<const int64_t> x,
                               std::span<const int64_t> scale) {
    ScaleIndex index;
    if (element_count(scale) == 1) return index;
    TN_TRY(axis, axis_in(node.attr_int("axis", 1), x.size()));
    AxisSplit split(x, axis);
    index.inner_ = split.inner;
    index.size_ = split.size;
    int64_t block = node.attr_int("block_size");
    if (block < 0) return invalid(cat("block_size: expected a number from 0, got ", block));
    if (scale.size() == 1 && block == 0) {
      if (scale[0] != split.size)
        return invalid(cat("scale: expected ", split.size, " elements, got ", scale[0]));
      index.per_axis_ = true;
      return index;
    }
    if (scale.size() != x.size())
      return invalid(cat("scale: expected rank ", x.size(), ", got ", scale.size()));
    int64_t blocks = scale[static_cast<size_t>(axis)];
    if (block == 0) block = blocks > 0 ? (split.size + blocks - 1) / blocks : 1;
    for (size_t d = 0; d < x.size(); ++d) {
      bool is_cut = d == static_cast<size_t>(axis);
      int64_t expected = is_cut ? x[d] / block + (x[d] % block != 0) : x[d];
      if (scale[d] != expected)
        return invalid(cat("scale axis ", d, ": expected ", expected, ", got ", scale[d]));
    }
    index.block_ = block;
    index.blocks_ = blocks;
    return index;
  }
  int64_t operator()(int64_t i) const {
    if (per_axis_) return i / inner_ % size_;
    if (!block_) return 0;
    int64_t along = i / inner_ % size_, outer = i / inner_ / size_;
    return (outer * blocks_ + along / block_) * inner_ + i % inner_;
  }

 private:
  bool per_axis_ = false;
  int64_t inner_ = 1, size_ = 1, block_ = 0, blocks_ = 0;
};

Status quantize_shape(EditView edit, Node node) {
  Type type = node.input(0).type(), scale = node.input(1).type(), zero = node.input(2).type();
  if (type.is_static() && scale.is_static())
    TN_CHECK(ScaleIndex::of(node, type.dims, scale.dims).status());
  if (scale.is_static() && zero.is_static() && scale.elements() != zero.elements())
    return invalid(cat("zero_point: expected ", scale.elements(), " elements as scale, got ",
                       zero.elements()));
  type.dtype = node.is("QuantizeLinear") ? quantized_dtype(node) : real_dtype(node);
  return set_output(edit, node, 0, type);
}

// The rule of QuantizeLinear for one number: x/scale to the nearest even, plus zero, saturated.
// ONNX divides in float32; a scale is a float32 (or narrower) number. It says nothing of NaN, which
// becomes the lowest integer, as in ONNX Runtime.
void store_quantized(void* to,
                     uint32_t dtype,
                     int64_t i,
                     double x,
                     double scale,
                     double zero,
                     const CastRule& rule) {
  double ratio = static_cast<double>(static_cast<float>(x) / static_cast<float>(scale));
  if (!is_integer(dtype)) return store_number(to, dtype, i, ratio + zero, rule);
  const double value = std::nearbyint(ratio) + zero;
  const IntegerEnds ends = integer_ends(dtype);
  const double held = std::isnan(value) ? ends.low : std::clamp(value, ends.low, ends.high);
  store_integer(to, dtype, i, static_cast<int64_t>(held));
}

// Whole bytes of packed types belong to one thread.
template <class Body>
void for_each_element(tn_ctx* ctx, int64_t count, const Body& body) {
  parallel_for(ctx, static_cast<uint64_t>((count + 7) / 8), 512, [&](uint64_t begin, uint64_t end) {
    int64_t last = std::min(static_cast<int64_t>(end) * 8, count);
    for (auto i = static_cast<int64_t>(begin) * 8; i < last; ++i)
      body(i);
  });
}

Status check_types(std::initializer_list<uint32_t> dtypes) {
  for (uint32_t dtype : dtypes)
    if (!is_supported(dtype)) return unsupported(cat("element type ", dtype_name(dtype)));
  return {};
}

Status quantize_ref(const Call& call) {
  uint32_t dtype = quantized_dtype(call.node());
  if (call.has(2)) dtype = call.dtype(2);
  TN_CHECK(check_types({call.dtype(0), call.dtype(1), dtype}));
  TN_TRY(index, ScaleIndex::of(call.node(), call.shape(0), call.shape(1)));
  TN_TRY(out, call.out(0, dtype, call.shape(0)));
  CastRule rule{call.node().attr_int("saturate", 1) != 0};
  for_each_element(call.ctx(), element_count(out), [&, index = index](int64_t i) {
    int64_t s = index(i);
    double zero = call.has(2) ? load_number(call.data<char>(2), dtype, s) : 0;
    store_quantized(data_of<char>(out), dtype, i, load_number(call.data<char>(0), call.dtype(0), i),
                    load_number(call.data<char>(1), call.dtype(1), s), zero, rule);
  });
  return {};
}

Status dequantize_ref(const Call& call) {
  uint32_t dtype = real_dtype(call.node());
  TN_CHECK(check_types({call.dtype(0), call.dtype(1), dtype}));
  TN_TRY(index, ScaleIndex::of(call.node(), call.shape(0), call.shape(1)));
  TN_TRY(out, call.out(0, dtype, call.shape(0)));
  for_each_element(call.ctx(), element_count(out), [&, index = index](int64_t i) {
    int64_t s = index(i);
    double zero = call.has(2) ? load_number(call.data<char>(2), call.dtype(0), s) : 0;
    double off = load_number(call.data<char>(0), call.dtype(0), i) - zero;
    store_number(data_of<char>(out), dtype, i,
                 off * load_number(call.data<char>(1), call.dtype(1), s));
  });
  return {};
}

// Scales for each block of values along an axis: as many as x has places there, and how they lie.
struct Blocks {
  int64_t axis = 0, count = 0, size = 0, extent = 0;
  // x's shape with the axis parted into blocks: [.., count, size, ..].
  std::vector<int64_t> parted, whole;
};
Result<Blocks> blocks_of(Gradients& g) {
  Type x = g.in(0).type(), scale = g.in(1).type();
  if (!x.ranked || !scale.ranked || scale.rank() != x.rank())
    return unsupported("its gradient where a rank is not known");
  Blocks out{.axis = 0, .size = g.of().attr_int("block_size"), .parted = {}, .whole = {}};
  TN_TRY(axis, axis_in(g.of().attr_int("axis", 1), x.rank()));
  const auto at = static_cast<size_t>(axis);
  out.axis = axis, out.extent = x.dims[at], out.count = scale.dims[at];
  for (size_t d = 0; d < x.rank(); ++d) {
    if (x.dims[d] < 0 && d >= at)
      return unsupported("its gradient by blocks where sizes from their axis on are not known");
    out.whole.push_back(d < at ? 0 : d > at ? x.dims[d] : out.count * out.size);
    out.parted.push_back(d < at ? 0 : d > at ? x.dims[d] : out.count);
    if (d == at) out.parted.push_back(out.size);
  }
  return out;
}
bool is_blocked(Gradients& g) {
  return g.of().attr_int("block_size") > 0;
}

// A scale or zero point in a shape that broadcasts with x; falsy for what is absent.
Value along(Gradients& g, Value v) {
  Type type = v ? v.type() : Type{}, x = g.in(0).type();
  if (!v || (type.ranked && type.rank() == 0)) return v;
  if (is_blocked(g)) {
    Blocks blocks = g.take(blocks_of(g));
    std::vector<int64_t> repeats(blocks.parted.size(), 1);
    repeats[static_cast<size_t>(blocks.axis) + 1] = blocks.size;
    Value each =
        g.op("Expand", {g.op("Unsqueeze", {v, g.ints({blocks.axis + 1})}), g.ints(repeats)});
    Value all = g.op("Reshape", {each, g.ints(blocks.whole)});
    if (blocks.count * blocks.size == blocks.extent) return all;
    return g.op("Slice", {all, g.ints({0}), g.ints({blocks.extent}), g.ints({blocks.axis})});
  }
  if (!type.ranked || !x.ranked || type.rank() != 1) {
    g.fail(unsupported("its gradient where a rank is not known"));
    return {};
  }
  if (type.dims[0] == 1) return v;
  std::vector<int64_t> dims(x.rank(), 1);
  Result<int64_t> axis = axis_in(g.of().attr_int("axis", 1), x.rank());
  if (!axis.ok()) {
    g.fail(std::move(axis).status());
    return {};
  }
  dims[static_cast<size_t>(*axis)] = -1;
  return g.op("Reshape", {v, g.ints(dims)}, {{"allowzero", 1}});
}

// The part of each scale, of something of x's shape: the caller knows NumPy's broadcasting only.
Value for_scale(Gradients& g, Value each) {
  Type scale = g.in(1).type(), x = g.in(0).type();
  if (each && scale.ranked && scale.rank() > 0 && is_blocked(g)) {
    Blocks blocks = g.take(blocks_of(g));
    if (const int64_t rest = blocks.count * blocks.size - blocks.extent; rest > 0) {
      std::vector<int64_t> pads(2 * x.rank(), 0);
      pads[x.rank() + static_cast<size_t>(blocks.axis)] = rest;
      each = g.op("Pad", {each, g.ints(pads)});
    }
    return g.sum(g.op("Reshape", {each, g.ints(blocks.parted)}), {blocks.axis + 1}, false);
  }
  if (!each || scale.rank() == 0 || scale.dims[0] == 1) return each;
  Result<int64_t> axis = axis_in(g.of().attr_int("axis", 1), x.rank());
  std::vector<int64_t> others;
  for (int64_t d = 0; d < static_cast<int64_t>(x.rank()); ++d)
    if (d != *axis) others.push_back(d);
  return others.empty() ? each : g.sum(each, others, false);
}

// The straight-through estimator (Bengio et al. 2013, section 3): rounding is taken for the
// identity, saturation for what it is. The cotangent of a quantized tensor is that of the
// floating-point values that it stands for, so that of DequantizeLinear passes as it is, and what
// both give to a scale adds up to that of learned step sizes (Esser et al. 2020, section 2.1).
Status quantize_vjp(Gradients& g) {
  uint32_t dtype = quantized_dtype(g.of());
  if (!is_integer(dtype)) return unsupported(cat("its gradient for ", dtype_name(dtype)));
  uint32_t real = g.in(1).dtype();
  Value scale = along(g, g.in(1)), x = g.cast(g.in(0), real);
  Value ratio = g.div(x, scale), rounded = g.op("Round", {ratio});
  const IntegerEnds ends = integer_ends(dtype);
  Value low = g.number(ends.low, real), high = g.number(ends.high, real);
  if (g.in(2)) {
    Value zero = g.cast(along(g, g.in(2)), real);
    low = g.sub(low, zero);
    high = g.sub(high, zero);
  }
  Value held = g.op("Min", {g.op("Max", {rounded, low}), high});
  Value inside = g.op("Equal", {held, rounded});
  Value passed = g.op("Where", {inside, g.cotangent(), g.number(0, g.cotangent().dtype())});
  if (g.wanted(0)) g.set(0, g.cast(passed, g.in(0).dtype()));
  if (g.wanted(1)) g.set(1, for_scale(g, g.neg(g.mul(g.cast(passed, real), ratio))));
  return {};
}

Status dequantize_vjp(Gradients& g) {
  if (g.wanted(0)) g.set(0, g.cotangent());
  if (!g.wanted(1)) return {};
  uint32_t real = g.in(1).dtype();
  Value steps = g.div(g.cast(g.out(), real), along(g, g.in(1)));
  g.set(1, for_scale(g, g.mul(g.cast(g.cotangent(), real), steps)));
  return {};
}

Result<Value> positive_scales(EditView edit, Sampler& random, const std::vector<int64_t>& dims) {
  std::vector<float> scales;
  for (int64_t i = element_count(dims); i > 0; --i)
    scales.push_back(0.01f * static_cast<float>(random.integer(1, 5)));
  return edit.constant<float>(TN_F32, dims, scales);
}

Result<Node> quantize_sample(EditView edit, uint64_t seed, bool forward) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(2, 4), scale_dims;
  std::vector<Attr> attrs;
  int64_t form = random.integer(0, 2), axis = random.integer(0, int64_t(dims.size()) - 1);
  if (form > 0) attrs.emplace_back("axis", axis);
  if (form == 1) scale_dims = {dims[static_cast<size_t>(axis)]};
  if (form == 2) {
    attrs.emplace_back("block_size", int64_t{2});
    scale_dims = dims;
    scale_dims[static_cast<size_t>(axis)] = (dims[static_cast<size_t>(axis)] + 1) / 2;
  }
  TN_TRY(scale, positive_scales(edit, random, scale_dims));
  uint32_t dtype = random.coin() ? TN_I8 : TN_U8;
  std::vector<int8_t> zeros(static_cast<size_t>(element_count(scale_dims)), 3);
  TN_TRY(zero, edit.constant<int8_t>(dtype, scale_dims, zeros));
  TN_TRY(x, random.input(forward ? TN_F32 : dtype, dims));
  return edit.add({.type = forward ? "QuantizeLinear" : "DequantizeLinear",
                   .inputs = {x, scale, zero},
                   .attrs = attrs});
}
Result<Node> forward_sample(EditView edit, uint64_t seed) {
  return quantize_sample(edit, seed, true);
}
Result<Node> backward_sample(EditView edit, uint64_t seed) {
  return quantize_sample(edit, seed, false);
}

Status dynamic_shape(EditView edit, Node node) {
  Type type = node.input(0).type();
  type.dtype = TN_U8;
  TN_CHECK(set_output(edit, node, 0, type));
  TN_CHECK(set_output(edit, node, 1, TN_F32, {}));
  return set_output(edit, node, 2, TN_U8, {});
}

// uint8 over the tensor's own range, which always holds 0. In float32, as ONNX defines it.
Status dynamic_ref(const Call& call) {
  if (call.dtype(0) != TN_F32) return no_kernel(call.dtype(0));
  const auto* x = call.data<float>(0);
  int64_t n = element_count(call.in(0));
  float low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  float scale = (high - low) / 255.0f;
  if (scale == 0) scale = 1;
  float zero = std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
  TN_TRY(y, call.out(0, TN_U8, call.shape(0)));
  for (int64_t i = 0; i < n; ++i)
    store_quantized(data_of<char>(y), TN_U8, i, double(x[i]), double(scale), double(zero), {});
  TN_TRY(scale_out, call.out(1, TN_F32, std::initializer_list<int64_t>{}));
  *data_of<float>(scale_out) = scale;
  TN_TRY(zero_out, call.out(2, TN_U8, std::initializer_list<int64_t>{}));
  *data_of<uint8_t>(zero_out) = static_cast<uint8_t>(zero);
  return {};
}
Result<Node> dynamic_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(1, 3)));
  return edit.add({.type = "DynamicQuantizeLinear", .inputs = {x}, .n_outputs = 3});
}

// One scale a tensor becomes one for every example; blocks have a scale of each example's own;
// scales of an axis stay as long as they are shared.
Status linear_batch(Batching& b) {
  size_t rank = b.ranked(b.of().input(0), b.of().type()).rank();
  size_t scales = b.ranked(b.of().input(1), b.of().type()).rank();
  bool blocks = b.of().attr_int("block_size") > 0, own = b.batched(1) || b.batched(2);
  if (own && scales > 0 && !blocks) return unsupported("scales of an axis that differ by example");
  bool all = own || blocks;
  std::vector<Value> inputs{all ? for_all_examples(b, 0) : b.in(0)};
  for (uint64_t i = 1; i < b.of().n_inputs(); ++i)
    inputs.push_back(all ? for_all_examples(b, i) : b.in(i));
  int64_t axis = own && !blocks ? 0 : shifted({b.of().attr_int("axis", 1)}, rank)[0];
  Node made = again(b, b.of(), inputs, {{"axis", axis}});
  if (made) b.set(0, made.output());
  return {};
}

// ONNX has one type for x and the scale before opset 23, and runtimes have no other kernels: x
// stays in the type that it had.
constexpr tn_op kQuantize =
    op_row({.type = "QuantizeLinear",
            .since = 25,
            .attributes = R"([{"name": "axis", "type": "int", "default": 1},
                              {"name": "block_size", "type": "int", "default": 0},
                              {"name": "output_dtype", "type": "dtype"},
                              {"name": "precision", "type": "dtype"},
                              {"name": "saturate", "type": "int", "default": 1}])",
            .quant = "quantize",
            .shape = shape<quantize_shape, "x: float|i32, scale: any, zero_point: stored?">,
            .ref = ref<quantize_ref>,
            .sample = sample<forward_sample>,
            .vjp = vjp<quantize_vjp>,
            .vjp_inputs = 7,
            .vjp_outputs = 0,
            .batch = batch<linear_batch>,
            .cast = "cpu=keep cuda=keep O2=keep O3=keep own=1"});
constexpr tn_op kDequantize =
    op_row({.type = "DequantizeLinear",
            .since = 25,
            .attributes = R"([{"name": "axis", "type": "int", "default": 1},
                              {"name": "block_size", "type": "int", "default": 0},
                              {"name": "output_dtype", "type": "dtype"}])",
            .quant = "dequantize",
            .shape = shape<quantize_shape, "x: T, scale: any, zero_point: T? ; T = stored">,
            .ref = ref<dequantize_ref>,
            .sample = sample<backward_sample>,
            .vjp = vjp<dequantize_vjp>,
            .vjp_inputs = 2,
            .vjp_outputs = 1,
            .batch = batch<linear_batch>,
            .cast = "own=1"});
constexpr tn_op kDynamic = op_row({.type = "DynamicQuantizeLinear",
                                   .since = 11,
                                   .quant = "integer",
                                   .shape = shape<dynamic_shape, "x: f32">,
                                   .ref = ref<dynamic_ref>,
                                   .sample = sample<dynamic_sample>,
                                   .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(quantize, &kQuantize, &kDequantize, &kDynamic)

}  // namespace tenon::ops
