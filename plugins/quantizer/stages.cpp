// SPDX-License-Identifier: Apache-2.0
#include "stages.hpp"

#include <algorithm>

namespace tenon::quantizer {

Result<Stages> Stages::make(tn_ctx* ctx,
                            Graph graph,
                            Feed* feed,
                            const std::vector<std::string>& backends) {
  Stages out;
  out.ctx_ = ctx;
  out.graph_ = graph;
  out.backends_ = backends;
  out.batches_ = feed->batches();
  out.inputs_ = graph.inputs();
  bool fits = out.inputs_.size() == feed->inputs().size();
  for (size_t i = 0; fits && i < out.inputs_.size(); ++i)
    fits = graph.input_name(i) == feed->inputs()[i].input;
  if (!fits)
    return invalid("option original: expected a model with the inputs of the quantized one");
  for (uint64_t b = 0; b < feed->batches(); ++b) {
    TN_TRY(batch, feed->load(b));
    for (size_t i = 0; i < out.inputs_.size(); ++i) {
      TN_TRY(dense, Tensor::copy_of(ctx, batch.inputs[i]));
      TN_TRY(place, out.file_.add(dense.dl()));
      out.live_[out.inputs_[i].id].push_back(std::move(place));
    }
  }
  return Result<Stages>(std::move(out));
}

Status Stages::reach(Value value, const Cancel& cancel) {
  if (live_.contains(value.id)) return {};
  Piece piece = piece_for(value);
  TN_CHECK(run(piece, cancel));
  for (Node node : piece.nodes)
    done_.insert(node.id);
  forget(value);
  return {};
}

Stages::Piece Stages::piece_for(Value value) const {
  std::unordered_set<tn_value_id> needed{value.id};
  std::unordered_set<tn_node_id> inside;
  Piece out;
  std::vector<Node> nodes = graph_.nodes();
  for (size_t i = nodes.size(); i-- > 0;) {
    std::vector<Value> made = nodes[i].outputs();
    bool is_needed = std::any_of(made.begin(), made.end(), [&](Value v) {
      return v && needed.contains(v.id) && !live_.contains(v.id);
    });
    if (!is_needed) continue;
    out.nodes.insert(out.nodes.begin(), nodes[i]);
    inside.insert(nodes[i].id);
    for (Value v : nodes[i].inputs())
      if (v && needed.insert(v.id).second && live_.contains(v.id)) out.read.push_back(v);
  }
  for (Node node : out.nodes)
    for (Value v : node.outputs()) {
      if (!v) continue;
      bool is_read = v == value;
      for (uint64_t i = 0; i < v.consumer_count(); ++i)
        is_read = is_read || !inside.contains(v.consumer(i).id);
      if (is_read) out.results.push_back(v);
    }
  return out;
}

// The piece as a model: inputs are those of the whole model, then what it reads of earlier pieces.
Result<OwnedGraph> Stages::graph_of(const Piece& piece) const {
  TN_TRY(out, OwnedGraph::copy_of(graph_.raw));
  TN_TRY(edit, Edit::begin(out.get()));
  for (uint64_t i = edit.graph().outputs().size(); i-- > 0;)
    TN_CHECK(services.edit->remove_output(edit.raw, i));
  for (Value v : piece.read) {
    if (!v.producer()) continue;
    TN_TRY(given, edit.input(cat(v.name(), "/reached"), v.type()));
    TN_CHECK(edit.replace(edit.value(v.id), given));
  }
  for (Value v : piece.results)
    TN_CHECK(edit.output(cat(v.name(), "/result"), edit.value(v.id)));
  std::unordered_set<tn_node_id> kept;
  for (Node node : piece.nodes)
    kept.insert(node.id);
  std::vector<Node> nodes = graph_.nodes();
  for (size_t i = nodes.size(); i-- > 0;)
    if (!kept.contains(nodes[i].id)) TN_CHECK(edit.erase(edit.node(nodes[i].id)));
  TN_CHECK(edit.commit());
  return Result<OwnedGraph>(std::move(out));
}

Status Stages::run(const Piece& piece, const Cancel& cancel) {
  TN_TRY(graph, graph_of(piece));
  TN_TRY(plan, Plan::on_first(ctx_, graph.view(), {}, backends_));
  for (uint64_t b = 0; b < batches_; ++b)
    TN_CHECK(run_batch(piece, plan, b, cancel));
  return {};
}

Status Stages::run_batch(const Piece& piece, Plan& plan, uint64_t b, const Cancel& cancel) {
  TN_CHECK(cancel.check());
  TN_TRY(tensors, read_inputs(b));
  for (Value v : piece.read) {
    if (!v.producer()) continue;
    TN_TRY(tensor, read(v, b));
    tensors.push_back(std::move(tensor));
  }
  std::vector<DLTensor> given;
  for (const Tensor& tensor : tensors)
    given.push_back(tensor.dl());
  TN_CHECK(plan.run(given, cancel.raw()));
  for (size_t i = 0; i < piece.results.size(); ++i) {
    TN_TRY(dense, plan[i].dense(ctx_));
    TN_TRY(place, file_.add(dense.dl()));
    live_[piece.results[i].id].push_back(std::move(place));
  }
  return {};
}

Result<std::vector<Tensor>> Stages::read_inputs(uint64_t b) const {
  std::vector<Tensor> out;
  for (Value v : inputs_) {
    TN_TRY(tensor, read(v, b));
    out.push_back(std::move(tensor));
  }
  return out;
}

// What no node that has not been run reads; inputs of the model stay.
void Stages::forget(Value reached) {
  std::erase_if(live_, [&](const auto& one) {
    Value v{graph_.raw, one.first};
    if (v == reached || !v.producer()) return false;
    for (uint64_t i = 0; i < v.consumer_count(); ++i)
      if (!done_.contains(v.consumer(i).id)) return false;
    for (const TensorFile::Place& place : one.second)
      file_.drop(place);
    return true;
  });
}

}  // namespace tenon::quantizer
