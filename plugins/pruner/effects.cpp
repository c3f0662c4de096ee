// SPDX-License-Identifier: Apache-2.0
#include "effects.hpp"

#include <algorithm>
#include <numeric>

#include "tenon/sdk/edit.hpp"

namespace tenon::pruner {
namespace {

// Channels in a random order, another one for each stream.
std::vector<size_t> random_order(size_t n, uint64_t seed, uint64_t stream) {
  std::vector<double> draws(n);
  services.random->uniform(seed, stream, 0, draws.data(), n);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return draws[a] < draws[b]; });
  return order;
}

}  // namespace

Result<Effects> Effects::make(tn_ctx* ctx,
                              const tn_graph* graph,
                              const std::vector<const Group*>& groups,
                              const BatchPlan& plan) {
  Effects out;
  out.orders_ = plan.orders;
  out.seed_ = plan.seed;
  for (const Group* group : groups)
    TN_CHECK(out.collect(*group));
  TN_TRY(lossy, with_loss(ctx, graph, plan, &out.feed_));
  out.rules_ = BatchRules::of(lossy.view());
  TN_CHECK(out.insert(lossy.get()));
  Result<Plan> compiled = Plan::on_first(ctx, lossy.view(), {}, {});
  if (!compiled.ok()) return std::move(compiled).status().in("effects on the loss");
  out.plan_ = std::move(*compiled);
  return Result<Effects>(std::move(out));
}

Status Effects::collect(const Group& group) {
  std::vector<Use> uses;
  for (const Member& member : group.members) {
    if (member.kind != Kind::kReads) continue;
    auto inputs = member.node.inputs();
    auto seen =
        std::find_if(group.activations.begin(), group.activations.end(),
                     [&](const Member& one) { return std::ranges::count(inputs, one.value) > 0; });
    if (seen == group.activations.end())
      return unsupported(cat(node_text(member.node), " does not say what it multiplies ",
                             member.value.name(), " with; leave it out by the option skip"));
    auto at = std::find_if(gates_.begin(), gates_.end(), [&](const Gate& gate) {
      return gate.value == seen->value && gate.axis == seen->axis;
    });
    if (at == gates_.end()) {
      Gate gate{seen->value, seen->axis, {}, {}, std::vector<float>(seen->channel.size(), 1)};
      gate.shape.assign(seen->value.type().rank(), 1);
      gate.shape[seen->axis] = static_cast<int64_t>(seen->channel.size());
      at = gates_.insert(gates_.end(), std::move(gate));
    }
    for (uint64_t i = 0; i < inputs.size(); ++i) {
      std::pair<Node, uint64_t> reader{member.node, i};
      if (inputs[i] == seen->value && std::ranges::count(at->readers, reader) == 0)
        at->readers.push_back(reader);
    }
    auto number = static_cast<size_t>(at - gates_.begin());
    if (std::ranges::count(uses, number, &Use::gate) == 0) uses.push_back({number, seen->channel});
  }
  if (uses.empty())
    return unsupported(
        cat("no weight reads the channels of ", group.layer, "; leave it out by the option skip"));
  uses_.push_back(std::move(uses));
  channels_.push_back(group.n_channels());
  return {};
}

Status Effects::insert(tn_graph* graph) {
  TN_TRY(edit, Edit::begin(graph));
  for (size_t g = 0; g < gates_.size(); ++g) {
    const Gate& gate = gates_[g];
    TN_TRY(factors, edit.input(cat("pruner/gate", g), Type(TN_F32, gate.shape)));
    for (const auto& [node, input] : gate.readers) {
      Node reader = edit.node(node.id);  // behind the gate of another axis, where there is one
      TN_TRY(gated, edit.op("Mul", {reader.input(input), factors}));
      TN_CHECK(edit.set_input(reader, input, gated));
    }
  }
  return edit.commit();
}

Status Effects::load(uint64_t batch) {
  TN_TRY(loaded, feed_.load(batch));
  TN_CHECK(rules_.check(loaded.inputs).in(feed_.batch_text(batch)));
  inputs_.assign(loaded.inputs.begin(), loaded.inputs.end());
  batch_ = batch;
  return {};
}

void Effects::set(size_t group, int64_t channel, float to) {
  for (const Use& use : uses_[group])
    for (size_t e = 0; e < use.channel.size(); ++e)
      if (use.channel[e] == channel) gates_[use.gate].numbers[e] = to;
}

Result<double> Effects::loss(const Cancel& cancel) {
  std::vector<DenseView> views;
  for (const Gate& gate : gates_)
    views.emplace_back(TN_F32, gate.shape, gate.numbers.data());
  std::vector<DLTensor> all = inputs_;
  for (const DenseView& view : views)
    all.push_back(*view.get());
  Status ran = plan_.run(all, cancel.raw());
  if (!ran.ok()) return std::move(ran).in(cat("loss of ", feed_.batch_text(batch_)));
  return double{*plan_[plan_.n_outputs() - 1].data<float>()};
}

Result<std::vector<float>> Effects::of(size_t group, const Cancel& cancel) {
  size_t n = channels_[group];
  std::vector<float> out(orders_ * n);
  TN_TRY(whole, loss(cancel));
  for (uint64_t o = 0; o < orders_; ++o) {
    double before = whole;
    uint64_t stream = (batch_ * uses_.size() + group) * orders_ + o;
    for (size_t channel : random_order(n, seed_, stream)) {
      set(group, static_cast<int64_t>(channel), 0);
      TN_TRY(after, loss(cancel));
      out[o * n + channel] = static_cast<float>(after - before);
      before = after;
    }
    for (size_t channel = 0; channel < n; ++channel)
      set(group, static_cast<int64_t>(channel), 1);
  }
  return out;
}

}  // namespace tenon::pruner
