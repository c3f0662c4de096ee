// SPDX-License-Identifier: Apache-2.0
// RandomUniform, RandomNormal, their -Like forms, Bernoulli, Multinomial; and tenon.Random, whose
// key is an input, so that a training loop gets other numbers in each step. The others are made of
// the -Like forms, which is how vmap gives each example numbers of its own.
#include "random.hpp"

#include <algorithm>
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

uint32_t stated_type(Node node, uint32_t fallback) {
  tn_any any = node.attr("dtype");
  return any.tag == TN_ANY_DTYPE ? static_cast<uint32_t>(any.v.u) : fallback;
}

Status expect_float(uint32_t dtype) {
  if (is_float(dtype)) return {};
  return invalid(cat("dtype: expected a float type, got ", dtype_name(dtype)));
}

Status drawn_shape(EditView edit, Node node) {
  uint32_t dtype = stated_type(node, TN_F32);
  TN_CHECK(expect_float(dtype));
  TN_CHECK(expect_no_inputs(node));
  std::vector<int64_t> shape = node.attr_ints("shape");
  return set_output(edit, node, 0, dtype, Dims(shape.begin(), shape.end()));
}

Status like_shape(EditView edit, Node node) {
  Type type = node.input(0).type();
  type.dtype = stated_type(node, type.dtype);
  return set_output(edit, node, 0, type);
}

// The largest number of the type that is below this one, so that what is drawn from [low, high) is
// not rounded to high.
double largest_below(double high, uint32_t dtype) {
  double rounded = 0;
  store_number(reinterpret_cast<char*>(&rounded), dtype, 0, high);
  rounded = load_number(reinterpret_cast<const char*>(&rounded), dtype, 0);
  if (rounded < high) return rounded;
  const int digits = dtype == TN_F64 ? 53 : dtype == TN_F32 ? 24 : dtype == TN_F16 ? 11 : 8;
  int exponent = 0;
  const bool is_power = std::frexp(rounded, &exponent) == 0.5;
  return rounded - std::ldexp(1.0, exponent - digits - (is_power ? 1 : 0));
}

Status fill_drawn(const DLTensor& out,
                  const std::vector<double>& draws,
                  double scale,
                  double shift,
                  double largest = HUGE_VAL) {
  for (size_t i = 0; i < draws.size(); ++i)
    store_number(data_of<char>(out), dtype_of(out), static_cast<int64_t>(i),
                 std::min(shift + scale * draws[i], largest));
  return {};
}
Status fill_uniform(const DLTensor& out,
                    const std::vector<double>& draws,
                    double low,
                    double high) {
  const double largest = high > low ? largest_below(high, dtype_of(out)) : HUGE_VAL;
  return fill_drawn(out, draws, high - low, low, largest);
}

Status draw(const Call& call, uint32_t dtype, std::span<const int64_t> shape, bool normal) {
  TN_CHECK(expect_float(dtype));
  for (int64_t dim : shape)
    if (dim < 0) return invalid(cat("shape: expected numbers from 0, got ", dim));
  TN_TRY(out, call.out(0, dtype, shape));
  Node node = call.node();
  Random random = Random::of_node(node);
  int64_t n = element_count(out);
  if (normal)
    return fill_drawn(out, random.normal(0, n), node.attr_float("scale", 1),
                      node.attr_float("mean"));
  double low = node.attr_float("low", 0), high = node.attr_float("high", 1);
  return fill_uniform(out, random.uniform(0, n), low, high);
}

Status drawn_ref(const Call& call) {
  std::vector<int64_t> shape = call.node().attr_ints("shape");
  return draw(call, stated_type(call.node(), TN_F32), shape, call.node().is("RandomNormal"));
}
Status like_ref(const Call& call) {
  return draw(call, stated_type(call.node(), call.dtype(0)), call.shape(0),
              call.node().is("RandomNormalLike"));
}

Status bernoulli_ref(const Call& call) {
  TN_TRY(out, call.out(0, stated_type(call.node(), call.dtype(0)), call.shape(0)));
  std::vector<double> draws = Random::of_node(call.node()).uniform(0, element_count(out));
  for (size_t i = 0; i < draws.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    double p = load_number(call.data<char>(0), call.dtype(0), at);
    store_number(data_of<char>(out), dtype_of(out), at, draws[i] < p ? 1 : 0);
  }
  return {};
}

Status multinomial_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  Dim rows = x.ranked && x.rank() == 2 ? dims_of(x)[0] : Dim();
  return set_output(edit, node, 0, stated_type(node, TN_I32),
                    {rows, node.attr_int("sample_size", 1)});
}

// x: unnormalized log probabilities [n, classes].
Status multinomial_ref(const Call& call) {
  std::span<const int64_t> x = call.shape(0);
  int64_t samples = call.node().attr_int("sample_size", 1);
  if (x.size() != 2 || x[1] < 1 || samples < 0)
    return invalid("expected x [n, classes] with a class, and a sample_size from 0");
  TN_TRY(out, call.out(0, stated_type(call.node(), TN_I32), {x[0], samples}));
  std::vector<double> draws = Random::of_node(call.node()).uniform(0, x[0] * samples);
  for (int64_t row = 0; row < x[0]; ++row) {
    std::vector<double> sums(static_cast<size_t>(x[1]));
    double highest = -HUGE_VAL, sum = 0;
    auto log_p = [&](int64_t k) {
      return load_number(call.data<char>(0), call.dtype(0), row * x[1] + k);
    };
    for (int64_t k = 0; k < x[1]; ++k)
      highest = std::max(highest, log_p(k));
    for (int64_t k = 0; k < x[1]; ++k)
      sums[static_cast<size_t>(k)] = sum += std::exp(log_p(k) - highest);
    for (int64_t s = 0; s < samples; ++s) {
      double at = draws[static_cast<size_t>(row * samples + s)] * sum;
      int64_t k = std::upper_bound(sums.begin(), sums.end() - 1, at) - sums.begin();
      store_integer(data_of<char>(out), dtype_of(out), row * samples + s, k);
    }
  }
  return {};
}

// Inputs: shape, and key: the seed, and in its second number the stream.
Status keyed_shape(EditView edit, Node node) {
  uint32_t dtype = stated_type(node, TN_F32);
  std::optional<Dims> shape = contents(node.input(0));
  return shape ? set_output(edit, node, 0, dtype, *shape)
               : set_output(edit, node, 0, unranked(dtype));
}

Status keyed_ref(const Call& call) {
  TN_TRY(shape, read_shape(call.in(0), "shape"));
  std::vector<int64_t> key = read_ints(call.in(1));
  if (key.empty() || key.size() > 2)
    return invalid(cat("key: expected 1 or 2 numbers, got ", key.size()));
  std::string_view kind = call.node().attr_text("kind", "uniform");
  if (kind != "uniform" && kind != "normal")
    return invalid(cat("kind: expected one of uniform, normal, got '", kind, "'"));
  uint32_t dtype = stated_type(call.node(), TN_F32);
  TN_CHECK(expect_float(dtype));
  TN_TRY(out, call.out(0, dtype, shape));
  Random random(static_cast<uint64_t>(key[0]), key.size() > 1 ? static_cast<uint64_t>(key[1]) : 0);
  int64_t n = element_count(out);
  if (kind == "normal") return fill_drawn(out, random.normal(0, n), 1, 0);
  return fill_uniform(out, random.uniform(0, n), 0, 1);
}

// The same numbers for something of the shape.
Result<std::vector<Value>> drawn_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value like =
      b.op("Expand", {b.number(0, stated_type(node, TN_F32)), b.ints(node.attr_ints("shape"))});
  std::vector<Attr> attrs{{"seed", seed_of(node)}};
  bool normal = node.is("RandomNormal");
  for (const char* name : {normal ? "mean" : "low", normal ? "scale" : "high"})
    if (tn_any given = node.attr(name); given.tag != TN_ANY_NONE) attrs.emplace_back(name, given);
  Value y = b.op(normal ? "RandomNormalLike" : "RandomUniformLike", {like}, attrs);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<std::vector<Value>> bernoulli_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value drawn = b.op("RandomUniformLike", {node.input(0)},
                     {{"seed", seed_of(node)}, {"dtype", any_dtype(TN_F64)}});
  Value hit = b.op("Less", {drawn, b.cast(node.input(0), TN_F64)});
  Value y = b.cast(hit, stated_type(node, node.input(0).dtype()));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> drawn_sample(EditView edit, uint64_t seed, const char* type) {
  Sampler random(edit, seed);
  std::vector<int64_t> shape = random.shape(1, 3);
  return edit.add(
      {.type = type, .attrs = {{"shape", shape}, {"seed", 7.0}, {"dtype", any_dtype(TN_F32)}}});
}
Result<Node> like_sample(EditView edit, uint64_t seed, const char* type) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(0, 3)));
  return edit.add({.type = type, .inputs = {x}, .attrs = {{"seed", static_cast<double>(seed)}}});
}
Result<Node> multinomial_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 3), random.integer(1, 4)}));
  return edit.add({.type = "Multinomial",
                   .inputs = {x},
                   .attrs = {{"sample_size", random.integer(1, 4)}, {"dtype", any_dtype(TN_I64)}}});
}
Result<Node> keyed_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(shape, edit.ints(random.shape(0, 3)));
  TN_TRY(key, edit.ints({static_cast<int64_t>(seed), 3}));
  return edit.add({.type = "Random",
                   .inputs = {shape, key},
                   .attrs = {{"kind", random.coin() ? "normal" : "uniform"}},
                   .domain = "tenon"});
}

#define UNIFORM                                          \
  R"({"name": "low", "type": "float", "default": 0.0},)" \
  R"({"name": "high", "type": "float", "default": 1.0},)"
#define NORMAL                                            \
  R"({"name": "mean", "type": "float", "default": 0.0},)" \
  R"({"name": "scale", "type": "float", "default": 1.0},)"
#define SEEDED R"({"name": "dtype", "type": "dtype"},{"name": "seed", "type": "float"})"
#define SHAPED R"({"name": "shape", "type": "ints"},)"

constexpr tn_op random_row(const char* type,
                           const char* attributes,
                           decltype(tn_op::shape) shape_column,
                           decltype(tn_op::ref) ref_column,
                           decltype(tn_op::sample) sample_column,
                           decltype(tn_op::decompose) decompose_column = nullptr,
                           const char* axes = "",
                           uint32_t traits = 0) {
  return op_row({.type = type,
                 .since = 22,
                 .traits = TN_OP_RANDOM | traits,
                 .axes = axes,
                 .attributes = attributes,
                 .shape = shape_column,
                 .decompose = decompose_column,
                 .cost = cost<move_cost>,
                 .ref = ref_column,
                 .sample = sample_column});
}
constexpr tn_op kUniform = random_row(
    "RandomUniform",
    "[" UNIFORM SHAPED SEEDED "]",
    shape<drawn_shape>,
    ref<drawn_ref>,
    sample<[](EditView e, uint64_t seed) { return drawn_sample(e, seed, "RandomUniform"); }>,
    decompose<drawn_decompose>);
constexpr tn_op kNormal = random_row(
    "RandomNormal",
    "[" NORMAL SHAPED SEEDED "]",
    shape<drawn_shape>,
    ref<drawn_ref>,
    sample<[](EditView e, uint64_t seed) { return drawn_sample(e, seed, "RandomNormal"); }>,
    decompose<drawn_decompose>);
constexpr tn_op kUniformLike = random_row(
    "RandomUniformLike",
    "[" UNIFORM SEEDED "]",
    shape<like_shape, "x: any">,
    ref<like_ref>,
    sample<[](EditView e, uint64_t seed) { return like_sample(e, seed, "RandomUniformLike"); }>,
    nullptr,
    "s.. -> s..",
    TN_OP_READS_SHAPE);
constexpr tn_op kNormalLike = random_row(
    "RandomNormalLike",
    "[" NORMAL SEEDED "]",
    shape<like_shape, "x: any">,
    ref<like_ref>,
    sample<[](EditView e, uint64_t seed) { return like_sample(e, seed, "RandomNormalLike"); }>,
    nullptr,
    "s.. -> s..",
    TN_OP_READS_SHAPE);
constexpr tn_op kBernoulli =
    random_row("Bernoulli",
               "[" SEEDED "]",
               shape<like_shape, "x: float">,
               ref<bernoulli_ref>,
               sample<[](EditView e, uint64_t seed) { return like_sample(e, seed, "Bernoulli"); }>,
               decompose<bernoulli_decompose>);
constexpr tn_op kMultinomial =
    random_row("Multinomial",
               R"([{"name": "sample_size", "type": "int", "default": 1},)" SEEDED "]",
               shape<multinomial_shape, "x: float[n classes]">,
               ref<multinomial_ref>,
               sample<multinomial_sample>,
               nullptr,
               "n c~ -> n s ; s = sample_size");
constexpr tn_op kKeyed = op_row({.type = "Random",
                                 .since = 1,
                                 .domain = "tenon",
                                 .traits = TN_OP_DATA_SHAPE,
                                 .attributes = R"([{"name": "dtype", "type": "dtype"},
                              {"name": "kind", "type": "string", "default": "uniform"}])",
                                 .shape = shape<keyed_shape, "shape: int[n], key: int">,
                                 .cost = cost<move_cost>,
                                 .ref = ref<keyed_ref>,
                                 .sample = sample<keyed_sample>});

}  // namespace

TENON_OPS(
    random, &kUniform, &kNormal, &kUniformLike, &kNormalLike, &kBernoulli, &kMultinomial, &kKeyed)

}  // namespace tenon::ops
