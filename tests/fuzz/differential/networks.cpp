// SPDX-License-Identifier: Apache-2.0
#include "networks.hpp"

#include <algorithm>
#include <cmath>

#include "network_builder.hpp"
#include "quantized_network.hpp"

namespace tenon::fuzz {
namespace {

constexpr int64_t kMostElements = 16384;  // of one value
constexpr size_t kLatest = 5;             // values that a block mostly reads

template <class Wanted>
std::vector<Value> values_that(const std::vector<Value>& values, Wanted wanted) {
  std::vector<Value> out;
  std::copy_if(values.begin(), values.end(), std::back_inserter(out), wanted);
  return out;
}

}  // namespace

Type NetworkBuilder::new_type(size_t rank) {
  int64_t n = one_of({1, 2, 3, 4});
  if (rank == 4) {
    int64_t size = one_of({1, 4, 5, 8, 14});
    return Type(TN_F32,
                {n, one_of({1, 3, 4, 8, 16, 24, 32}), size, maybe() ? size : one_of({3, 8})});
  }
  if (rank == 3)
    return Type(TN_F32, {n, one_of({1, 2, 7, 16, 33}), one_of({4, 8, 16, 24, 32, 64})});
  return Type(TN_F32, {one_of({1, 3, 8, 16}), one_of({4, 10, 16, 32, 64})});
}

Value NetworkBuilder::take(size_t rank) {
  std::vector<Value> fit = values_that(values_, [&](Value value) {
    return value.type().rank() == rank && value.type().elements() <= kMostElements;
  });
  if (fit.empty() || random.one_in(12)) return input(new_type(rank));
  size_t latest = std::min(fit.size(), random.one_in(4) ? fit.size() : kLatest);
  return fit[fit.size() - 1 - random.below(latest)];
}

Value NetworkBuilder::like(Value x) {
  if (!x) return {};
  std::vector<Value> fit = values_that(
      values_, [&](Value value) { return value.id != x.id && value.type().dims == x.type().dims; });
  if (fit.empty() || random.one_in(4)) return input(x.type());
  return random.one_of(fit);
}

Value NetworkBuilder::weight(const std::vector<int64_t>& dims) {
  Type type(TN_F32, dims);
  if (!random.one_in(3)) return b.take(b.edit().input(name(kWeight), type));
  return b.take(b.edit().constant(b.take(filled_weight(b.edit().ctx(), type, random))));
}

Value NetworkBuilder::positive(const std::vector<int64_t>& dims) {
  Tensor numbers = b.take(filled(b.edit().ctx(), Type(TN_F32, dims), random));
  if (!numbers) return {};
  int64_t n = Type(TN_F32, dims).elements();
  for (int64_t i = 0; i < n; ++i)
    numbers.data<float>()[i] = 0.5f + std::fabs(numbers.data<float>()[i]);
  return b.take(b.edit().constant(numbers));
}

Result<Tensor> filled_weight(tn_ctx* ctx, const Type& type, Random& random) {
  TN_TRY(numbers, filled(ctx, type, random));
  double fan = type.rank() > 1 ? static_cast<double>(type.elements() / type.dims[0]) : 1;
  for (int64_t i = 0; i < type.elements(); ++i)
    numbers.data<float>()[i] /= static_cast<float>(std::sqrt(fan));
  return Result<Tensor>(std::move(numbers));
}

Value activated(NetworkBuilder& net, Value x) {
  static constexpr const char* kPlain[] = {"Relu",     "Relu",      "Relu",     "Sigmoid",
                                           "Tanh",     "Gelu",      "Elu",      "Mish",
                                           "Softplus", "HardSwish", "LeakyRelu"};
  size_t which = net.random.below(std::size(kPlain) + 2);
  if (which < std::size(kPlain)) return net.b.op(kPlain[which], {x});
  if (which == std::size(kPlain)) return net.b.mul(x, net.b.op("Sigmoid", {x}));
  return net.b.op("Clip", {x, net.b.number(0, TN_F32), net.b.number(6, TN_F32)});
}

Result<OwnedGraph> grow_network(tn_ctx* ctx,
                                size_t n_nodes,
                                bool is_quantized,
                                Random& random,
                                std::map<std::string, uint64_t>& used) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(ctx, &raw));
  OwnedGraph graph = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  NetworkBuilder net(edit, random);
  bool has_images = random.one_in(2);
  while (edit.graph().n_nodes() < n_nodes) {
    bool is_of_images = has_images && !random.one_in(4);
    random.one_of(is_of_images ? blocks_of_images() : blocks_of_sequences()).grow(net);
    TN_CHECK(net.b.status());
  }
  size_t n = 0;
  for (Value value : net.values())
    if (value.consumer_count() == 0 || random.one_in(8))
      TN_CHECK(edit.output(cat("out", n++), value));
  if (is_quantized) TN_CHECK(quantize_network(edit, random));
  TN_CHECK(edit.commit());
  for (Node node : graph.view().nodes())
    ++used[std::string(node.type())];
  return Result<OwnedGraph>(std::move(graph));
}

}  // namespace tenon::fuzz
