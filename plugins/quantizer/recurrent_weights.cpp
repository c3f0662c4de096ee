// SPDX-License-Identifier: Apache-2.0
#include "recurrent_weights.hpp"

#include <array>
#include <optional>

#include "tenon/sdk/coupling.hpp"

namespace tenon::quantizer {
namespace {

constexpr int64_t kChannels = 1;  // [directions, gates * units, columns]

struct Found {
  Node dq;
  std::vector<float> factors;
};

// Behind the weight's DequantizeLinear, which factors of columns may follow.
std::optional<Found> found_behind(Value read) {
  Found out;
  Node made = read ? read.producer() : Node{};
  if (made && made.is("Mul") && made.input(1).is_constant() && !made.input(0).is_constant()) {
    Tensor factors = made.input(1).constant();
    if (factors.dl().ndim != 1 || made.input(1).dtype() != TN_F32) return std::nullopt;
    out.factors.assign(factors.data<float>(), factors.data<float>() + element_count(factors.dl()));
    made = made.input(0).producer();
  }
  if (!is_stored_weight(made)) return std::nullopt;
  out.dq = made;
  return out;
}

std::optional<uint64_t> position(Node node, Value input) {
  for (uint64_t i = 0; i < node.n_inputs(); ++i)
    if (node.input(i) == input) return i;
  return std::nullopt;
}

// What keeps the weight from being rounded again; empty: nothing.
std::string_view refusal(const StoredWeight& one) {
  if (!stands_for(one.original, one.dq))
    return "the original has no float weight of its name and shape";
  Node node = one.layer.node;
  Value read = node.input(static_cast<uint64_t>(one.layer.product.weight));
  if (read.consumer_count() > 1 || one.dq.output().consumer_count() > 1)
    return "several nodes share its weight";
  return scales_refusal(one.dq, kChannels, -1);
}

}  // namespace

std::vector<StoredWeight> recurrent_weights(
    Graph quantized, Graph original, const std::function<void(Node, std::string_view)>& left) {
  const std::map<std::string, Node, std::less<>> by_name = nodes_by_name(original);
  std::vector<StoredWeight> out;
  for (Node node : quantized.nodes()) {
    Stated stated(node);
    if (stated.family() != TN_COUPLING_RECURRENT) continue;
    for (std::string_view key : std::array{"w", "r"}) {
      Value read = stated.input(key);
      std::optional<Found> found = found_behind(read);
      std::optional<uint64_t> at = found ? position(node, read) : std::nullopt;
      if (!at || found->dq.input(0).type().rank() != 3) continue;
      StoredWeight one{.dq = found->dq, .factors = std::move(found->factors)};
      const std::vector<int64_t> dims = one.dq.input(0).type().dims;
      one.layer.node = node;
      one.layer.product = {.act = 0, .weight = static_cast<int64_t>(*at), .axis = kChannels};
      one.layer.form = {.groups = dims[0], .rows = dims[1], .columns = dims[2]};
      one.layer.is_state = key == "r";
      auto before = by_name.find(node.name());
      if (before != by_name.end()) one.original = before->second.input(*at);
      std::string_view why = refusal(one);
      if (why.empty()) {
        out.push_back(std::move(one));
      } else {
        left(node, why);
      }
    }
  }
  return out;
}

}  // namespace tenon::quantizer
