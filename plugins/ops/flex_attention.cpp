// SPDX-License-Identifier: Apache-2.0
// FlexAttention: attention whose scores and probabilities pass through bodies.
#include "flex_attention.hpp"

#include <algorithm>

#include "bodies.hpp"
#include "cost.hpp"
#include "dispatch.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {

// What a file of another domain than ONNX's own states is ONNX's number of the type.
Result<uint32_t> flex::softmax_type(Node node, uint32_t dtype) {
  constexpr std::pair<int64_t, uint32_t> kTypes[] = {
      {1, TN_F32}, {10, TN_F16}, {11, TN_F64}, {16, TN_BF16}};
  tn_any any = node.attr("softmax_precision");
  if (any.tag == TN_ANY_NONE) return dtype == TN_F64 ? TN_F64 : TN_F32;
  for (auto [code, type] : kTypes)
    if (int_of(any, 0) == code) return type;
  return invalid(cat("softmax_precision: expected one of 1, 10, 11, 16, got ", int_of(any, 0)));
}

namespace {

Status flex_shape(EditView edit, Node node) {
  TN_CHECK(captures_of(node).status());
  Type q = node.input(0).type(), v = node.input(2).type();
  if (!q.ranked || !v.ranked || q.rank() != 4 || v.rank() != 4)
    return set_output(edit, node, 0, unranked(q.dtype));
  Dims y = dims_of(q);
  y[3] = dims_of(v)[3];
  return set_output(edit, node, 0, v.dtype, y);
}

struct Sizes {
  int64_t batch, heads, shared, queries, keys, size, width;
};
Result<Sizes> sizes_of(const Call& call) {
  std::span<const int64_t> q = call.shape(0), k = call.shape(1), v = call.shape(2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4)
    return invalid("expected q, k and v of rank 4");
  if (k[0] != q[0] || v[0] != q[0] || k[1] != v[1] || k[2] != v[2] || k[3] != q[3])
    return invalid("expected q, k and v of one batch, k and v of one length, q and k of one size");
  if (k[1] < 1 || q[1] % k[1] != 0)
    return invalid(cat("heads of q: expected a multiple of ", k[1], ", got ", q[1]));
  return Sizes{q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
}

// The body `name` of x, where the node has one.
Status pass(const Call& call, std::string_view name, Tensor& x) {
  const tn_body* body = call.body(name);
  if (!body) return {};
  std::vector<DLTensor> in{x.dl()};
  for (auto n = static_cast<uint64_t>(call.node().attr_int("captures")); n > 0; --n)
    in.push_back(call.in(call.n_in() - n));
  TN_TRY(results, run_body(call, *body, in, 1));
  if (to_vector(shape_of(results[0].dl())) != to_vector(shape_of(x.dl())) ||
      dtype_of(results[0].dl()) != dtype_of(x.dl()))
    return invalid(cat("body ", name, ": expected a result of its input's type"));
  x = results[0];
  return {};
}

template <class T>
void score(const Call& call, const Sizes& z, uint32_t dtype, const Tensor& scores) {
  double scale = call.node().attr_float("scale", 1 / std::sqrt(static_cast<double>(z.size)));
  auto rounded = [](double value) { return static_cast<double>(static_cast<T>(value)); };
  double root = rounded(std::sqrt(scale));
  parallel_for(call.ctx(), uint64_t(z.batch * z.heads * z.queries), 1, [&](uint64_t a, uint64_t b) {
    for (auto r = static_cast<int64_t>(a); r < static_cast<int64_t>(b); ++r) {
      int64_t h = r / z.queries % z.heads, batch = r / z.queries / z.heads;
      const T* q = call.data<T>(0) + r * z.size;
      for (int64_t j = 0; j < z.keys; ++j) {
        int64_t head = batch * z.shared + h / (z.heads / z.shared);
        const T* k = call.data<T>(1) + (head * z.keys + j) * z.size;
        double sum = 0;
        for (int64_t d = 0; d < z.size; ++d)
          sum +=
              rounded(static_cast<double>(q[d]) * root) * rounded(static_cast<double>(k[d]) * root);
        store_number(scores.data<char>(), dtype, r * z.keys + j, rounded(sum));
      }
    }
  });
}

void softmax(const Sizes& z, uint32_t dtype, const Tensor& scores) {
  std::vector<double> line(static_cast<size_t>(z.keys));
  for (int64_t r = 0; z.keys > 0 && r < z.batch * z.heads * z.queries; ++r) {
    for (int64_t j = 0; j < z.keys; ++j)
      line[static_cast<size_t>(j)] = load_number(scores.data<char>(), dtype, r * z.keys + j);
    double highest = *std::max_element(line.begin(), line.end()), sum = 0;
    for (double& value : line)
      sum += value = std::exp(value - highest);
    for (int64_t j = 0; j < z.keys; ++j)
      store_number(scores.data<char>(), dtype, r * z.keys + j, line[static_cast<size_t>(j)] / sum);
  }
}

Status flex_ref(const Call& call) {
  TN_TRY(sizes, sizes_of(call));
  const Sizes& z = sizes;
  TN_TRY(dtype, flex::softmax_type(call.node(), call.dtype(0)));
  TN_TRY(scores, Tensor::zeros(call.ctx(), dtype,
                               std::vector<int64_t>{z.batch, z.heads, z.queries, z.keys}));
  TN_CHECK(dispatch<kFloats>(call.dtype(0), [&, &into = scores, as = dtype]<class T>() -> Status {
    score<T>(call, z, as, into);
    return {};
  }));
  TN_CHECK(pass(call, "score_mod", scores));
  softmax(z, dtype, scores);
  TN_CHECK(pass(call, "prob_mod", scores));
  TN_TRY(out, call.out(0, call.dtype(2), {z.batch, z.heads, z.queries, z.width}));
  for (int64_t r = 0; r < z.batch * z.heads * z.queries; ++r) {
    int64_t head =
        r / z.queries / z.heads * z.shared + r / z.queries % z.heads / (z.heads / z.shared);
    for (int64_t d = 0; d < z.width; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < z.keys; ++j)
        sum += load_number(scores.data<char>(), dtype, r * z.keys + j) *
               load_number(call.data<char>(2), call.dtype(2), (head * z.keys + j) * z.width + d);
      store_number(data_of<char>(out), call.dtype(2), r * z.width + d, sum);
    }
  }
  return {};
}

Result<Node> flex_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t n = random.integer(1, 2), shared = random.integer(1, 2), queries = random.integer(1, 3);
  int64_t heads = shared * random.integer(1, 2), keys = random.integer(1, 4);
  TN_TRY(q, random.input(TN_F32, {n, heads, queries, 4}));
  TN_TRY(k, random.input(TN_F32, {n, shared, keys, 4}));
  TN_TRY(v, random.input(TN_F32, {n, shared, keys, random.integer(1, 3)}));
  TN_TRY(body, make_body(edit, [&](const Edit& inner) -> Status {
           TN_TRY(in, inner.input("scores", Type(TN_F32, {n, heads, queries, keys})));
           TN_TRY(out, inner.op("Tanh", {in}));
           return inner.output("changed", out);
         }));
  std::vector<Attr> attrs{{"scale", 0.25}};
  if (random.coin()) attrs.emplace_back("score_mod", any_graph(body.get()));
  return edit.add(
      {.type = "FlexAttention", .inputs = {q, k, v}, .attrs = attrs, .domain = "ai.onnx.preview"});
}

OpCost flex_cost(Node node) {
  Type q = node.input(0).type(), k = node.input(1).type();
  if (!q.is_static() || !k.is_static() || k.rank() != 4) return {0, node_bytes(node)};
  double products = static_cast<double>(q.elements()) + output_elements(node);
  return {2 * products * static_cast<double>(k.dims[2]), node_bytes(node)};
}

constexpr tn_op kFlex = op_row(
    {.type = "FlexAttention",
     .since = 1,
     .domain = "ai.onnx.preview",
     .traits = TN_OP_CONTROL,
     .attributes = R"([{"name": "captures", "type": "int", "default": 0},
                                                  {"name": "prob_mod", "type": "graph"},
                                                  {"name": "scale", "type": "float"},
                                                  {"name": "score_mod", "type": "graph"},
                                                  {"name": "softmax_precision", "type": "int"}])",
     .shape = shape<flex_shape, "q: T[b h l d], k: T[b g s d], v: T[b g s e], captures: any...">,
     .decompose = decompose<flex::decomposed>,
     .cost = cost<flex_cost>,
     .ref = ref<flex_ref>,
     .sample = sample<flex_sample>,
     .cast = "cpu=low cuda=low"});

}  // namespace

TENON_OPS(flex_attention, &kFlex)

}  // namespace tenon::ops
