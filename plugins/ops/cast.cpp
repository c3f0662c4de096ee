// SPDX-License-Identifier: Apache-2.0
// Cast, CastLike and BitCast.
#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

uint32_t target_of(Node node) {
  tn_any to = node.attr("to");
  if (to.tag == TN_ANY_DTYPE) return static_cast<uint32_t>(to.v.u);
  return node.is("CastLike") ? node.input(1).dtype() : TN_DTYPE_NONE;
}

Status cast_shape(EditView edit, Node node) {
  Type type = node.input(0).type();
  uint32_t to = target_of(node);
  if (to == TN_DTYPE_NONE && !node.is("CastLike")) return invalid("to: expected a type, got none");
  bool integers = is_integer(type.dtype) && is_integer(to);
  type.dtype = to;
  TN_CHECK(set_output(edit, node, 0, type));
  return set_contents(edit, node.output(), integers ? contents(node.input(0)) : std::nullopt);
}

Result<CastRule> rule_of(Node node) {
  std::string_view mode = node.attr_text("round_mode", "up");
  RoundTo round = mode == "up" ? RoundTo::kUp : mode == "down" ? RoundTo::kDown : RoundTo::kNearest;
  if (round == RoundTo::kNearest && mode != "nearest")
    return invalid(cat("round_mode: expected one of up, down, nearest, got '", mode, "'"));
  return CastRule{node.attr_int("saturate", 1) != 0, round};
}

// Integers of 64 bits are rounded once to a type that is narrower than double.
double rounded_once(const void* data, uint32_t from, uint32_t to, int64_t i) {
  const bool is_narrower = TN_DTYPE_BITS(to) < 64 && to != TN_BOOL && !is_integer(to);
  if (!is_integer(from) || TN_DTYPE_BITS(from) < 64 || !is_narrower)
    return load_number(data, from, i);
  const int64_t number = load_integer(data, from, i);
  return static_cast<double>(from == TN_U64 ? static_cast<float>(static_cast<uint64_t>(number))
                                            : static_cast<float>(number));
}

Status cast_ref(const Call& call) {
  uint32_t from = call.dtype(0);
  uint32_t to = call.node().is("CastLike") ? call.dtype(1) : target_of(call.node());
  for (uint32_t dtype : {from, to}) {
    if (!is_supported(dtype)) return unsupported(cat("element type ", dtype_name(dtype)));
  }
  TN_TRY(rule, rule_of(call.node()));
  TN_TRY(out, call.out(0, to, call.shape(0)));
  const void* in = call.data<char>(0);
  void* result = data_of<char>(out);
  bool exact = is_integer(from) && is_integer(to);
  // Whole bytes of packed types belong to one thread: ranges in units of 8 elements.
  int64_t count = element_count(out);
  auto body = [&, rule = rule](uint64_t begin, uint64_t end) {
    int64_t last = std::min(static_cast<int64_t>(end) * 8, count);
    for (auto i = static_cast<int64_t>(begin) * 8; i < last; ++i) {
      if (exact) {
        store_integer(result, to, i, load_integer(in, from, i));
      } else {
        store_number(result, to, i, rounded_once(in, from, to, i), rule);
      }
    }
  };
  parallel_for(call.ctx(), static_cast<uint64_t>((count + 7) / 8), 512, body);
  return {};
}

Result<Node> cast_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(random.coin() ? TN_F32 : TN_I32, random.shape(0, 3)));
  constexpr uint32_t kTargets[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8, TN_I32, TN_I64, TN_BOOL};
  uint32_t to = kTargets[random.integer(0, 7)];
  return edit.add({.type = "Cast", .inputs = {x}, .attrs = {{"to", any_dtype(to)}}});
}
Result<Node> cast_like_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(0, 3)));
  TN_TRY(like, random.input(random.coin() ? TN_I32 : TN_I64, random.shape(0, 2)));
  return edit.add({.type = "CastLike", .inputs = {x, like}});
}

Status bit_cast_shape(EditView edit, Node node) {
  Type type = node.input(0).type();
  uint32_t to = target_of(node);
  if (type.dtype != TN_DTYPE_NONE && TN_DTYPE_BITS(type.dtype) != TN_DTYPE_BITS(to)) {
    return invalid(
        cat("to: expected a type of ", TN_DTYPE_BITS(type.dtype), " bits, got ", dtype_name(to)));
  }
  type.dtype = to;
  return set_output(edit, node, 0, type);
}
Status bit_cast_ref(const Call& call) {
  TN_TRY(out, call.out(0, target_of(call.node()), call.shape(0)));
  uint64_t bytes = bytes_of(call.dtype(0), element_count(out));
  if (bytes > 0) std::memcpy(data_of<char>(out), call.data<char>(0), bytes);
  return {};
}
Result<Node> bit_cast_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(0, 3)));
  return edit.add({.type = "BitCast", .inputs = {x}, .attrs = {{"to", any_dtype(TN_I32)}}});
}

Status cast_vjp(Gradients& g) {
  if (g.wanted(0)) g.set(0, g.cast(g.cotangent(), g.in(0).dtype()));
  return {};
}

// Of `like` only the type counts.
Status cast_like_batch(Batching& b) {
  Node made = again(b, b.of(), {b.in(0), b.in(1)});
  if (made) b.set(0, made.output(), b.batched(0));
  return {};
}

// Whole numbers that become integers lose digits in 16 bits, so that no level casts what they are
// made of.
constexpr const char* kAsGiven = "O2=follow O3=follow";

constexpr tn_op kCast = op_row({.type = "Cast",
                                .since = 28,
                                .axes = "s.. -> s..",
                                .attributes = R"([{"name": "to", "type": "dtype"},
                              {"name": "saturate", "type": "int", "default": 1},
                              {"name": "round_mode", "type": "string", "default": "up"}])",
                                .shape = shape<cast_shape, "x: any">,
                                .cost = cost<move_cost>,
                                .ref = ref<cast_ref>,
                                .sample = sample<cast_sample>,
                                .vjp = vjp<cast_vjp>,
                                .vjp_inputs = 0,
                                .vjp_outputs = 0,
                                .cast = kAsGiven});
constexpr tn_op kCastLike =
    op_row({.type = "CastLike",
            .since = 28,
            .axes = "s.., l.. -> s..",
            .attributes = R"([{"name": "saturate", "type": "int", "default": 1},
                              {"name": "round_mode", "type": "string", "default": "up"}])",
            .shape = shape<cast_shape, "x: any, like: any">,
            .cost = cost<move_cost>,
            .ref = ref<cast_ref>,
            .sample = sample<cast_like_sample>,
            .vjp = vjp<cast_vjp>,
            .vjp_inputs = 0,
            .vjp_outputs = 0,
            .batch = batch<cast_like_batch>,
            .cast = kAsGiven,
            .coupling = "same"});
constexpr tn_op kBitCast = op_row({.type = "BitCast",
                                   .since = 26,
                                   .traits = TN_OP_VIEW,
                                   .axes = "s.. -> s..",
                                   .attributes = R"([{"name": "to", "type": "dtype"}])",
                                   .shape = shape<bit_cast_shape, "x: any">,
                                   .cost = cost<move_cost>,
                                   .ref = ref<bit_cast_ref>,
                                   .sample = sample<bit_cast_sample>});

}  // namespace

TENON_OPS(cast, &kCast, &kCastLike, &kBitCast)

}  // namespace tenon::ops
