// SPDX-License-Identifier: Apache-2.0
// Optional, OptionalHasElement, OptionalGetElement. The latter two take plain values as well.
#include "bodies.hpp"
#include "lists.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

bool is_optional(Node node) {
  return node.input(0) && node.input(0).type().kind == TN_KIND_OPTIONAL;
}

// An optional of a sequence has no element type: what it holds says at run time what it is.
Status optional_shape(EditView edit, Node node) {
  tn_any stated = node.attr("type");  // of an empty one
  Type type =
      unranked(stated.tag == TN_ANY_DTYPE ? static_cast<uint32_t>(stated.v.u) : TN_DTYPE_NONE);
  if (node.input(0)) type = node.input(0).type();
  if (type.kind != TN_KIND_TENSOR) type = unranked(TN_DTYPE_NONE);
  return set_output(edit, node, 0, wrapped(type, TN_KIND_OPTIONAL));
}
Status optional_ref(const Call& call) {
  if (!call.has(0)) return pack(call, 0, {});
  bool is_list = call.node().input(0).type().kind != TN_KIND_TENSOR;
  return pack(call, 0, {Item::of(call.in(0), is_list)});
}

Status has_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, TN_BOOL, {});
}
Status has_ref(const Call& call) {
  bool has = call.has(0);
  if (has && is_optional(call.node())) {
    TN_TRY(items, unpack(call.in(0)));
    has = !items.empty();
  }
  TN_TRY(out, call.out(0, TN_BOOL, std::span<const int64_t>()));
  *data_of<bool>(out) = has;
  return {};
}

Status get_shape(EditView edit, Node node) {
  Type type = node.input(0).type();
  if (type.kind == TN_KIND_OPTIONAL) {
    // Without an element type it is the optional of a sequence.
    type.kind = type.dtype == TN_DTYPE_NONE ? TN_KIND_SEQUENCE : TN_KIND_TENSOR;
  }
  return set_output(edit, node, 0, type);
}
Status get_ref(const Call& call) {
  if (!is_optional(call.node())) return put(call, 0, Item::of(call.in(0)));
  TN_TRY(items, unpack(call.in(0)));
  if (items.empty()) return invalid("expected an optional that has an element, got an empty one");
  // The state of a Loop may be the sequence itself from the second iteration on.
  bool of_sequence = call.node().input(0).dtype() == TN_DTYPE_NONE;
  if (of_sequence && !items[0].is_list) return put(call, 0, Item::of(call.in(0)));
  return put(call, 0, items[0]);
}

Result<Value> some_optional(Sampler& random) {
  TN_TRY(x, random.input(TN_F32, random.shape(0, 2)));
  if (random.coin()) return x;  // plain values are taken too
  return random.edit().op("Optional", {x});
}
Result<Node> optional_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(0, 2)));
  return edit.add({.type = "Optional", .inputs = {x}});
}
Result<Node> has_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, some_optional(random));
  return edit.add({.type = "OptionalHasElement", .inputs = {x}});
}
Result<Node> get_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, some_optional(random));
  return edit.add({.type = "OptionalGetElement", .inputs = {x}});
}

constexpr tn_op kOptional = op_row({.type = "Optional",
                                    .since = 15,
                                    .traits = TN_OP_DATA_SHAPE,
                                    .attributes = R"([{"name": "type", "type": "dtype"}])",
                                    .shape = shape<optional_shape, "x: any?">,
                                    .ref = ref<optional_ref>,
                                    .sample = sample<optional_sample>});
constexpr tn_op kHas = op_row({.type = "OptionalHasElement",
                               .since = 28,
                               .shape = shape<has_shape, "x: any?">,
                               .ref = ref<has_ref>,
                               .sample = sample<has_sample>});
constexpr tn_op kGet = op_row({.type = "OptionalGetElement",
                               .since = 28,
                               .traits = TN_OP_DATA_SHAPE,
                               .shape = shape<get_shape, "x: any">,
                               .ref = ref<get_ref>,
                               .sample = sample<get_sample>});

}  // namespace

TENON_OPS(optional, &kOptional, &kHas, &kGet)

}  // namespace tenon::ops
