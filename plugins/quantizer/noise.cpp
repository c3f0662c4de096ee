// SPDX-License-Identifier: Apache-2.0
#include "noise.hpp"

#include <cmath>
#include <limits>
#include <tuple>

#include "tenon/sdk/pattern.hpp"

#include "repeated.hpp"
#include "storage.hpp"

namespace tenon::quantizer {

double NodeNoise::ratio() const {
  double noise = weights + activations;
  if (!std::isfinite(noise) || !std::isfinite(signal)) return std::numeric_limits<double>::max();
  if (noise == 0) return 0;
  return signal > 0 ? noise / signal : std::numeric_limits<double>::max();
}

// Adds to a copy of the graph what the measurement needs.
class NoiseBuilder {
 public:
  NoiseBuilder(Noise* out, EditView edit, const Assignment& assignment, const InsertionPlan& plan)
      : out_(out), edit_(edit), assignment_(assignment), plan_(plan) {}

  Status add(const Decision& one, const std::vector<Params>& params, bool is_skipped) {
    Node node = edit_.node(one.node.id);
    std::map<uint64_t, Value> weights, activations;
    NodeNoise row{std::string(node.name()), std::string(node.type())};
    if (one.taken) {
      row.is_compute = one.role.kind == Kind::kCompute;
      for (const Product& product : one.role.products)
        if (product.weight_of(node).is_constant())
          TN_CHECK(round_weight(node, {product.weight, product.axis}, &row, &weights));
      for (uint64_t i = 0; i < node.n_inputs(); ++i) {
        if (!assignment_.reads(one.node, i)) continue;
        TN_TRY(rounded, stored(node.input(i), params));
        activations[i] = rounded;
      }
    } else if (!is_skipped) {
      row.is_stored = true;
      for (const StoredInput& input : storable_inputs(one))
        TN_CHECK(round_weight(node, input, &row, &weights));
    }
    if (weights.empty() && activations.empty()) return {};
    Value result = Noise::result_of(node);
    if (!result) return {};
    size_t at = out_->nodes_.size();
    out_->nodes_.push_back(std::move(row));
    TN_CHECK(tap(result, result, at, &NodeNoise::signal));
    TN_CHECK(compare(node, weights, "_weights_rounded", at, &NodeNoise::weights));
    return compare(node, activations, "_inputs_rounded", at, &NodeNoise::activations);
  }

 private:
  Status round_weight(Node node,
                      const StoredInput& stored,
                      NodeNoise* row,
                      std::map<uint64_t, Value>* inputs) {
    const auto input = static_cast<uint64_t>(stored.input);
    Value value = node.input(input);
    DLTensor tensor = value.constant().dl();
    row->weight_elements += static_cast<uint64_t>(element_count(tensor));
    Value& known = weights_[{value.id, stored.axis, row->is_stored}];
    if (!known) {
      std::vector<float> numbers =
          row->is_stored ? rounded(tensor, stored, plan_.per_channel).numbers()
                         : dequantized(quantize_weight(tensor, {.axis = stored.axis,
                                                                .per_channel = plan_.per_channel,
                                                                .largest = plan_.largest}));
      TN_TRY(made, edit_.constant<float>(TN_F32, value.type().dims, numbers));
      known = made;
    }
    (*inputs)[input] = known;
    return {};
  }

  // What 8-bit nodes read in the place of a value.
  Result<Value> stored(Value v, const std::vector<Params>& params) {
    Value& known = stored_[v.id];
    if (known) return known;
    const Params& own = params[assignment_.group_of(v)];
    TN_TRY(scale, edit_.constant<float>(TN_F32, {}, {own.scale}));
    std::vector<uint8_t> number{static_cast<uint8_t>(own.zero_point)};
    TN_TRY(zero, edit_.constant<uint8_t>(plan_.is_signed ? TN_I8 : TN_U8, {}, number));
    TN_TRY(quantized, edit_.op("QuantizeLinear", {v, scale, zero}));
    TN_TRY(dequantized, edit_.op("DequantizeLinear", {quantized, scale, zero}));
    known = dequantized;
    return dequantized;
  }

  // result: the node's own, v has its shape.
  Status tap(Value v, Value result, size_t node, double NodeNoise::* sum) {
    TN_TRY(counting, out_->padded_.cleared(edit_, result, v));
    TN_TRY(total, edit_.op("ReduceSumSquare", {counting}, {{"keepdims", 0}}));
    out_->taps_.push_back({total, node, sum});
    return {};
  }

  Status compare(Node node,
                 const std::map<uint64_t, Value>& inputs,
                 std::string_view what,
                 size_t at,
                 double NodeNoise::* sum) {
    if (inputs.empty()) return {};
    TN_TRY(other, repeated(edit_, node, inputs, what));
    const Value result = Noise::result_of(node);
    TN_TRY(difference, edit_.op("Sub", {Noise::result_of(other), result}));
    return tap(difference, result, at, sum);
  }

  Noise* out_;
  EditView edit_;
  const Assignment& assignment_;
  const InsertionPlan& plan_;
  // By the float one, its axis and whether a float node reads it.
  std::map<std::tuple<tn_value_id, int64_t, bool>, Value> weights_;
  std::map<tn_value_id, Value> stored_;
};

Value Noise::result_of(Node node) {
  for (Value v : node.outputs())
    if (v && v.dtype() == TN_F32) return v;
  return {};
}

Result<Noise> Noise::make(Graph graph,
                          const Assignment& assignment,
                          const std::vector<Params>& params,
                          const InsertionPlan& plan,
                          const Selected& selected,
                          Padded padded) {
  Noise out;
  out.padded_ = std::move(padded);
  TN_TRY(copy, OwnedGraph::copy_of(graph.raw));
  out.graph_ = std::move(copy);
  TN_TRY(edit, Edit::begin(out.graph_.get()));
  NoiseBuilder builder(&out, edit, assignment, plan);
  for (const Decision& one : assignment.nodes())
    TN_CHECK(builder.add(one, params, !selected.takes(one.node)).in(one.node.name()));
  TN_CHECK(edit.commit());
  for (Tap& tap : out.taps_)
    tap.value.graph = out.graph_.get();
  return Result<Noise>(std::move(out));
}

Status Noise::measure(tn_ctx* ctx,
                      Feed* feed,
                      const std::vector<std::string>& backends,
                      const Cancel& cancel) {
  std::vector<Value> values;
  for (const Tap& tap : taps_)
    values.push_back(tap.value);
  Result<Plan> plan = Plan::on_first(ctx, graph_.view(), values, backends);
  if (!plan.ok()) return std::move(plan).status().in("noise of nodes");
  Progress progress(ctx, "measuring each node", feed->samples());
  auto add = [&](const Feed::Batch& batch) -> Status {
    TN_CHECK(padded_.read(batch.inputs));
    for (size_t i = 0; i < taps_.size(); ++i)
      nodes_[taps_[i].node].*taps_[i].sum += static_cast<double>(*plan->tap(i).data<float>());
    return {};
  };
  TN_CHECK(run_batches(*plan, *feed, cancel, &progress, add).in("noise of nodes"));
  return padded_.check();
}

}  // namespace tenon::quantizer
