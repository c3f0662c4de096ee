// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors: made, read, changed, split and joined.
#include <algorithm>

#include "bodies.hpp"
#include "lists.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Type sequence_of(Type element) {
  return wrapped(std::move(element), TN_KIND_SEQUENCE);
}

Result<int64_t> position(const Call& call, uint64_t i, size_t size, bool may_be_end) {
  if (!call.has(i)) return static_cast<int64_t>(size) - (may_be_end ? 0 : 1);
  int64_t at = read_ints(call.in(i)).at(0), n = static_cast<int64_t>(size);
  if (at < -n || at >= n + (may_be_end ? 1 : 0))
    return Status(TN_OUT_OF_RANGE,
                  cat("position: expected -", n, "..", n - (may_be_end ? 0 : 1), ", got ", at));
  return at < 0 ? at + n : at;
}

Status construct_shape(EditView edit, Node node) {
  Type type = node.input(0).type();
  for (uint64_t i = 1; i < node.n_inputs(); ++i)
    type = common(type, node.input(i).type());
  return set_output(edit, node, 0, sequence_of(type));
}
Status construct_ref(const Call& call) {
  std::vector<Item> items;
  for (uint64_t i = 0; i < call.n_in(); ++i) {
    if (call.dtype(i) != call.dtype(0)) return invalid("expected tensors of one element type");
    items.push_back(Item::of(call.in(i)));
  }
  return pack(call, 0, items);
}

Status empty_shape(EditView edit, Node node) {
  TN_CHECK(expect_no_inputs(node));
  tn_any any = node.attr("dtype");
  uint32_t type = any.tag == TN_ANY_DTYPE ? static_cast<uint32_t>(any.v.u) : TN_F32;
  return set_output(edit, node, 0, sequence_of(unranked(type)));
}
Status empty_ref(const Call& call) {
  return pack(call, 0, {});
}

// What all tensors of the sequence have in common.
Type element_of(Node node) {
  return wrapped(node.input(0).type(), TN_KIND_TENSOR);
}
Status at_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, element_of(node));
}
Status at_ref(const Call& call) {
  TN_TRY(items, unpack(call.in(0)));
  TN_TRY(at, position(call, 1, items.size(), false));
  return put(call, 0, items[static_cast<size_t>(at)]);
}

Status length_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, TN_I64, {});
}
Status length_ref(const Call& call) {
  TN_TRY(items, unpack(call.in(0)));
  TN_TRY(out, call.out(0, TN_I64, std::span<const int64_t>()));
  *data_of<int64_t>(out) = static_cast<int64_t>(items.size());
  return {};
}

Status change_shape(EditView edit, Node node) {
  Type type = node.input(0).type();
  if (type.dtype == TN_DTYPE_NONE && node.is("SequenceInsert")) type.dtype = node.input(1).dtype();
  return set_output(edit, node, 0, sequence_of(unranked(type.dtype)));
}
Status insert_ref(const Call& call) {
  TN_TRY(items, unpack(call.in(0)));
  TN_TRY(at, position(call, 2, items.size(), true));
  items.insert(items.begin() + at, Item::of(call.in(1)));
  return pack(call, 0, items);
}
Status erase_ref(const Call& call) {
  TN_TRY(items, unpack(call.in(0)));
  if (items.empty()) return {TN_OUT_OF_RANGE, "expected a tensor to take out, got no tensors"};
  TN_TRY(at, position(call, 1, items.size(), false));
  items.erase(items.begin() + at);
  return pack(call, 0, items);
}

Status split_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, sequence_of(unranked(node.input(0).dtype())));
}

// How many along the axis each tensor gets.
Result<std::vector<int64_t>> split_sizes(const Call& call, int64_t size) {
  if (!call.has(1)) return std::vector<int64_t>(static_cast<size_t>(size), 1);
  std::vector<int64_t> out = read_ints(call.in(1));
  if (call.in(1).ndim == 0) {
    int64_t chunk = out.at(0);
    if (chunk < 1) return invalid(cat("split: expected a number from 1, got ", chunk));
    out.assign(static_cast<size_t>(size / chunk), chunk);
    if (size % chunk) out.push_back(size % chunk);
  }
  int64_t sum = 0;
  for (int64_t part : out) {
    if (part < 0 || part > size - sum) return invalid(cat("split: a part of ", part, " of ", size));
    sum += part;
  }
  if (sum != size) return invalid(cat("split: expected a sum of ", size, ", got ", sum));
  return out;
}

Status split_ref(const Call& call) {
  TN_TRY(axis, axis_in(call.node().attr_int("axis"), call.shape(0).size()));
  AxisSplit split(call.shape(0), axis);
  TN_TRY(sizes, split_sizes(call, split.size));
  bool squeeze = !call.has(1) && call.node().attr_int("keepdims", 1) == 0;
  std::vector<Tensor> parts;
  std::vector<Item> items;
  Cells from(call.in(0));
  int64_t first = 0;
  for (int64_t size : sizes) {
    std::vector<int64_t> shape = to_vector(call.shape(0));
    shape[static_cast<size_t>(axis)] = size;
    if (squeeze) shape.erase(shape.begin() + axis);
    TN_TRY(part, Tensor::zeros(call.ctx(), call.dtype(0), shape));
    Cells to(part.dl());
    for (int64_t o = 0; o < split.outer; ++o)
      to.copy(o * size * split.inner, from, (o * split.size + first) * split.inner,
              size * split.inner);
    to.flush();
    first += size;
    parts.push_back(part);
  }
  for (const Tensor& part : parts)
    items.push_back(Item::of(part.dl()));
  return pack(call, 0, items);
}

Status concat_shape(EditView edit, Node node) {
  Type type = element_of(node);
  if (!type.ranked) return set_output(edit, node, 0, type);
  Dims dims = dims_of(type);
  bool fresh = node.attr_int("new_axis") != 0;
  TN_TRY(axis, axis_in(node.attr_int("axis"), dims.size() + (fresh ? 1 : 0)));
  if (fresh) dims.insert(dims.begin() + axis, Dim());
  dims[static_cast<size_t>(axis)] = Dim();
  return set_output(edit, node, 0, type.dtype, dims);
}

Status concat_ref(const Call& call) {
  TN_TRY(items, unpack(call.in(0)));
  if (items.empty()) return invalid("expected tensors to join, got none");
  bool fresh = call.node().attr_int("new_axis") != 0;
  TN_TRY(axis, axis_in(call.node().attr_int("axis"), items[0].dims.size() + (fresh ? 1 : 0)));
  auto along = static_cast<size_t>(axis);
  std::vector<int64_t> shape;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].dtype != items[0].dtype || items[i].is_list)
      return invalid("expected tensors of one element type");
    if (fresh) items[i].dims.insert(items[i].dims.begin() + axis, 1);
    std::vector<int64_t> dims = items[i].dims;
    if (i == 0) {
      shape = dims;
      continue;
    }
    if (dims.size() != shape.size()) return invalid("expected tensors of one rank");
    std::swap(dims[along], shape[along]);  // compares all but this axis
    bool same = true;
    for (size_t d = 0; d < dims.size(); ++d)
      same = same && (d == along || dims[d] == shape[d]);
    std::swap(dims[along], shape[along]);
    if (!same) return invalid(cat("tensor ", i, ": expected the others' sizes but along the axis"));
    shape[along] += dims[along];
  }
  TN_TRY(out, call.out(0, items[0].dtype, shape));
  AxisSplit split(shape, axis);
  Cells to(out);
  int64_t first = 0;
  for (const Item& item : items) {
    DenseView view(item.dtype, item.dims, item.data);
    Cells from(*view);
    int64_t size = item.dims[along];
    for (int64_t o = 0; o < split.outer; ++o)
      to.copy((o * split.size + first) * split.inner, from, o * size * split.inner,
              size * split.inner);
    first += size;
  }
  to.flush();
  return {};
}

Status map_shape(EditView edit, Node node) {
  TN_CHECK(captures_of(node).status());
  Graph body = graph_of(node, "body");
  if (!body.raw) return invalid("attribute body: expected a graph, got none");
  std::vector<Value> results = body.outputs();
  if (results.size() < node.n_outputs())
    return invalid(cat("body: expected ", node.n_outputs(), " outputs, got ", results.size()));
  for (uint64_t i = 0; i < node.n_outputs(); ++i)
    TN_CHECK(set_output(edit, node, i, sequence_of(unranked(results[i].dtype()))));
  return {};
}

// The body once for each tensor of the first sequence, with the same tensor of the other
// sequences; tensors and captures are handed to each run.
Status map_ref(const Call& call) {
  TN_TRY(body, body_of(call, "body"));
  Node node = call.node();
  auto captures = static_cast<uint64_t>(node.attr_int("captures"));
  if (call.n_in() < 1 + captures) return invalid("expected a sequence, then captures");
  std::vector<std::vector<Item>> lists(call.n_in());
  for (uint64_t i = 0; i < call.n_in() - captures; ++i) {
    if (i > 0 && node.input(i).type().kind != TN_KIND_SEQUENCE) continue;
    TN_TRY(items, unpack(call.in(i)));
    if (items.size() < lists[0].size())
      return invalid(
          cat("input ", i, ": expected ", lists[0].size(), " tensors, got ", items.size()));
    lists[i] = std::move(items);
  }
  std::vector<std::vector<Tensor>> results(node.n_outputs());
  for (size_t k = 0; k < lists[0].size(); ++k) {
    TN_CHECK(call.cancel().check());
    std::vector<DenseView> views;
    for (uint64_t i = 0; i < call.n_in(); ++i) {
      bool whole =
          i >= call.n_in() - captures || (i > 0 && node.input(i).type().kind != TN_KIND_SEQUENCE);
      Item item = whole ? Item::of(call.in(i)) : lists[i][k];
      views.emplace_back(item.dtype, item.dims, item.data);
    }
    std::vector<DLTensor> in;
    for (const DenseView& view : views)
      in.push_back(*view);
    TN_TRY(made, run_body(call, *body, in, results.size()));
    for (size_t r = 0; r < results.size(); ++r)
      results[r].push_back(made[r]);
  }
  for (size_t r = 0; r < results.size(); ++r) {
    std::vector<Item> items;
    for (const Tensor& tensor : results[r])
      items.push_back(Item::of(tensor.dl()));
    TN_CHECK(pack(call, r, items));
  }
  return {};
}

// A sequence of two or three tensors of one shape.
Result<Value> some_sequence(Sampler& random) {
  std::vector<int64_t> dims = random.shape(1, 2);
  std::vector<Value> tensors;
  for (int64_t n = random.integer(2, 3); n > 0; --n) {
    TN_TRY(x, random.input(TN_F32, dims));
    tensors.push_back(x);
  }
  return random.edit().op("SequenceConstruct", tensors);
}

Result<Node> construct_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(sequence, some_sequence(random));
  return sequence.producer();
}
Result<Node> empty_sample(EditView edit, uint64_t) {
  return edit.add({.type = "SequenceEmpty", .attrs = {{"dtype", any_dtype(TN_F32)}}});
}
// A node on a sequence, and where it takes one a position.
Result<Node> on_sequence(EditView edit, uint64_t seed, const char* type, bool inserts) {
  Sampler random(edit, seed);
  TN_TRY(sequence, some_sequence(random));
  TN_TRY(at, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(-2, 1)}));
  std::vector<Value> inputs{sequence};
  if (inserts) {
    TN_TRY(x, random.input(TN_F32, {2}));
    inputs.push_back(x);
  }
  inputs.push_back(at);
  return edit.add({.type = type, .inputs = inputs});
}
Result<Node> whole_sequence(EditView edit,
                            uint64_t seed,
                            const char* type,
                            std::vector<Attr> attrs) {
  Sampler random(edit, seed);
  TN_TRY(sequence, some_sequence(random));
  return edit.add({.type = type, .inputs = {sequence}, .attrs = std::move(attrs)});
}
Result<Node> split_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {4, 3}));
  TN_TRY(sizes, edit.ints({1, 3}));
  return edit.add({.type = "SplitToSequence",
                   .inputs = {x, random.coin() ? sizes : Value{}},
                   .attrs = {{"keepdims", random.integer(0, 1)}}});
}
Result<Node> map_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 2);
  TN_TRY(a, random.input(TN_F32, dims));
  TN_TRY(b, random.input(TN_F32, dims));
  TN_TRY(sequence, edit.op("SequenceConstruct", {a, b}));
  TN_TRY(body, make_body(edit, [&](const Edit& inner) -> Status {
           TN_TRY(item, inner.input("item", Type(TN_F32, dims)));
           TN_TRY(other, inner.input("other", Type(TN_F32, dims)));
           TN_TRY(sum, inner.op("Add", {item, other}));
           return inner.output("sum", sum);
         }));
  return edit.add(
      {.type = "SequenceMap", .inputs = {sequence, a}, .attrs = {{"body", any_graph(body.get())}}});
}

constexpr tn_op row(const char* type,
                    uint64_t since,
                    const char* attributes,
                    decltype(tn_op::shape) shape_column,
                    decltype(tn_op::ref) ref_column,
                    decltype(tn_op::sample) sample_column,
                    uint32_t traits = TN_OP_DATA_SHAPE) {
  return op_row({.type = type,
                 .since = since,
                 .traits = traits,
                 .attributes = attributes,
                 .shape = shape_column,
                 .ref = ref_column,
                 .sample = sample_column});
}
constexpr const char* kNone = "[]";
constexpr tn_op kConstruct = row("SequenceConstruct",
                                 11,
                                 kNone,
                                 shape<construct_shape>,
                                 ref<construct_ref>,
                                 sample<construct_sample>);
constexpr tn_op kEmpty = row("SequenceEmpty",
                             11,
                             R"([{"name": "dtype", "type": "dtype"}])",
                             shape<empty_shape>,
                             ref<empty_ref>,
                             sample<empty_sample>);
constexpr tn_op kAt =
    row("SequenceAt",
        11,
        kNone,
        shape<at_shape, "sequence: any, position: int[one]">,
        ref<at_ref>,
        sample<[](EditView e, uint64_t s) { return on_sequence(e, s, "SequenceAt", false); }>);
constexpr tn_op kLength =
    row("SequenceLength",
        11,
        kNone,
        shape<length_shape, "sequence: any">,
        ref<length_ref>,
        sample<[](EditView e, uint64_t s) { return whole_sequence(e, s, "SequenceLength", {}); }>);
constexpr tn_op kInsert =
    row("SequenceInsert",
        11,
        kNone,
        shape<change_shape, "sequence: T, tensor: T, position: int[one]?">,
        ref<insert_ref>,
        sample<[](EditView e, uint64_t s) { return on_sequence(e, s, "SequenceInsert", true); }>);
constexpr tn_op kErase =
    row("SequenceErase",
        11,
        kNone,
        shape<change_shape, "sequence: any, position: int[one]?">,
        ref<erase_ref>,
        sample<[](EditView e, uint64_t s) { return on_sequence(e, s, "SequenceErase", false); }>);
constexpr tn_op kSplit = row("SplitToSequence",
                             24,
                             R"([{"name": "axis", "type": "int", "default": 0},
            {"name": "keepdims", "type": "int", "default": 1}])",
                             shape<split_shape, "x: any, split: int?">,
                             ref<split_ref>,
                             sample<split_sample>);
constexpr tn_op kConcat =
    row("ConcatFromSequence",
        11,
        R"([{"name": "axis", "type": "int"}, {"name": "new_axis", "type": "int", "default": 0}])",
        shape<concat_shape, "sequence: any">,
        ref<concat_ref>,
        sample<[](EditView e, uint64_t s) {
          return whole_sequence(e, s, "ConcatFromSequence",
                                {{"axis", 0}, {"new_axis", static_cast<int64_t>(s % 2)}});
        }>);
constexpr tn_op kMap = row("SequenceMap",
                           17,
                           R"([{"name": "body", "type": "graph"},
                               {"name": "captures", "type": "int", "default": 0}])",
                           shape<map_shape>,
                           ref<map_ref>,
                           sample<map_sample>,
                           kControl);

}  // namespace

TENON_OPS(
    sequence, &kConstruct, &kEmpty, &kAt, &kLength, &kInsert, &kErase, &kSplit, &kConcat, &kMap)

}  // namespace tenon::ops
