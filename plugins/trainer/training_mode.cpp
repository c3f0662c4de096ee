// SPDX-License-Identifier: Apache-2.0
#include "training_mode.hpp"

#include <algorithm>
#include <unordered_map>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/match.hpp"
#include "tenon/sdk/notes.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/setting.hpp"

#include "gradients.hpp"

namespace tenon::trainer {
namespace {

Status replace_node(EditView edit, Node old, const std::vector<Value>& made) {
  for (uint64_t i = 0; i < old.n_outputs() && i < made.size(); ++i)
    if (old.output(i)) TN_CHECK(edit.replace(old.output(i), made[i]));
  return edit.erase(old);
}

constexpr std::string_view kBatchNormNote = "onnx.metadata.tenon.batch_norm";

bool is_noted(Node node, std::string_view word) {
  tn_any note{};
  Status unknown(services.graph->note(node.graph, node.id, str(kBatchNormNote), &note));
  return unknown.ok() && text_of(note) == word;
}

// A normalization, by all nodes that apply it, in the order in which they run.
using Norm = std::vector<Node>;

// Whether all that reads input `index` of these nodes are these nodes, at this input.
bool is_own_constant(const Norm& norm, uint64_t index) {
  Value value = norm.front().input(index);
  if (!value || !value.is_constant() || value.consumer_count() != norm.size()) return false;
  return std::ranges::all_of(norm, [&](Node node) { return node.input(index).id == value.id; });
}

bool has_own_statistics(const Norm& norm) {
  auto has_those_of_the_first = [&](Node node) {
    return node.input(1).id == norm.front().input(1).id &&
           node.input(2).id == norm.front().input(2).id;
  };
  return std::ranges::all_of(norm, has_those_of_the_first) && is_own_constant(norm, 3) &&
         is_own_constant(norm, 4);
}

// Those of the graph that are not frozen: nodes with one running mean are one normalization.
std::vector<Norm> norms_of(Graph graph) {
  std::vector<Norm> norms;
  std::unordered_map<tn_value_id, size_t> by_mean;
  for (Node node : graph.nodes()) {
    if (!node.is("BatchNormalization") || is_noted(node, "frozen")) continue;
    auto [at, is_new] = by_mean.try_emplace(node.input(3).id, norms.size());
    if (is_new) norms.emplace_back();
    norms[at->second].push_back(node);
  }
  return norms;
}

Result<Node> add_training_form(EditView edit, Node node, uint64_t n_outputs) {
  TN_TRY(made, edit.add({.type = "BatchNormalization",
                         .inputs = node.inputs(),
                         .attrs = {{"training_mode", 1},
                                   {"epsilon", node.attr_float("epsilon", 1e-5)},
                                   {"momentum", node.attr_float("momentum", 0.9)}},
                         .n_outputs = n_outputs,
                         .name = cat(node.name(), "/training"),
                         .scope = node.scope()}));
  TN_CHECK(replace_node(edit, node, made.outputs()));
  return made;
}

// ONNX's running variance follows the variance of the batch's n numbers of a channel; what follows
// the estimate of the population's, n/(n - 1) of it, is that and a share of the batch's part:
// v + (v - momentum*before)/(n - 1).
Result<Value> unbiased_variance(EditView edit, Node norm) {
  Builder b(edit);
  Value x = norm.input(0), before = norm.input(4), after = norm.output(2);
  const int64_t channels = before.type().dims[0];
  Value n = b.op("Div", {b.op("Size", {x}), b.number(static_cast<double>(channels), TN_I64)});
  Value one = b.number(1, TN_I64);
  Value rest = b.cast(b.op("Max", {b.sub(n, one), one}), after.dtype());
  const double momentum = norm.attr_float("momentum", 0.9);
  Value kept = b.mul(before, b.number(momentum, before.dtype()));
  Value out = b.add(after, b.div(b.sub(after, kept), rest));
  TN_CHECK(b.status());
  return out;
}

// The running statistics become states, which each node updates in turn; adds their names.
Status train_norm(EditView edit, const Norm& norm, std::vector<std::string>* statistics) {
  std::vector<Slot> slots;
  for (uint64_t i : {3, 4}) {
    std::string name(norm.front().input(i).name());
    TN_TRY(before, input_for_constant(edit, norm.front().input(i)));
    slots.push_back({name, before});
    statistics->push_back(std::move(name));
  }
  Value mean, variance;
  for (Node node : norm) {
    if (mean) TN_CHECK(edit.set_input(node, 3, mean));
    if (variance) TN_CHECK(edit.set_input(node, 4, variance));
    const bool is_unbiased = is_noted(node, "unbiased");
    TN_TRY(made, add_training_form(edit, node, 3));
    mean = made.output(1), variance = made.output(2);
    if (!is_unbiased) continue;
    TN_TRY(estimate, unbiased_variance(edit, made));
    variance = estimate;
  }
  TN_CHECK(slots[0].close(edit, mean));
  return slots[1].close(edit, variance);
}

// The key's second number, the stream, is another one for each node and each step.
struct Keys {
  Value seed, step;  // i64[1]
  int64_t n_nodes = 0, used = 0;

  Value next(Builder& b) {
    Value stream = b.add(b.mul(step, b.ints({n_nodes})), b.ints({used++}));
    return b.op("Concat", {seed, stream}, {{"axis", 0}});
  }
};

// Of the mask: that of x, or with a note one number for each sample, or for all of them.
Value mask_shape(Builder& b, Value x, std::string_view over) {
  if (over.empty()) return b.shape_of(x);
  Type type = b.ranked(x, "Dropout over samples");
  if (!b.edit().raw || !type.ranked) return {};
  std::vector<int64_t> ones(type.rank(), 1);
  if (over == "batch" || ones.empty()) return b.ints(ones);
  if (type.dims[0] >= 0) {
    ones[0] = type.dims[0];
    return b.ints(ones);
  }
  Value first = b.op("Slice", {b.op("Shape", {x}), b.ints({0}), b.ints({1})});
  ones.pop_back();
  return ones.empty() ? first : b.op("Concat", {first, b.ints(ones)}, {{"axis", 0}});
}

Status train_dropout(EditView edit, Node node, Keys* keys, bool driven) {
  Builder b(edit);
  Value x = node.input(0);
  tn_any note{};
  Status unknown(services.graph->note(node.graph, node.id, str(kDropoutOverNote), &note));
  const std::string over(unknown.ok() ? text_of(note) : "");
  driven = driven && over.empty();  // the ratio of branches is not that of elements
  double ratio = 0.5;
  if (node.input(1)) {
    std::optional<std::vector<double>> given = numbers_of(node.input(1));
    if (!given || given->size() != 1)
      return unsupported(cat("node ", node.name(), ": Dropout: expected a constant ratio"));
    ratio = (*given)[0];
  }
  Node random = b.node({.type = "Random",
                        .inputs = {mask_shape(b, x, over), keys->next(b)},
                        .domain = "tenon",
                        .scope = node.scope()});
  TN_CHECK(b.status());
  Value drop = driven ? setting(b, kDropout, ratio) : b.number(ratio, TN_F32);
  Value keep = b.op("GreaterOrEqual", {random.output(), drop});
  Value scaled = driven ? b.div(x, b.cast(b.sub(b.number(1, TN_F32), drop), x.dtype()))
                        : b.mul(x, b.number(ratio < 1 ? 1 / (1 - ratio) : 0, x.dtype()));
  Value y = b.op("Where", {keep, scaled, b.number(0, x.dtype())});
  TN_CHECK(b.status());
  return replace_node(edit, node, {y, keep});
}

Status train_dropouts(EditView edit, const std::vector<Node>& nodes, const TrainingMode& mode) {
  if (nodes.empty()) return {};
  Builder b(edit);
  auto n_nodes = static_cast<int64_t>(nodes.size());
  auto train_all = [&](Keys keys) -> Status {
    for (Node node : nodes)
      TN_CHECK(train_dropout(edit, node, &keys, mode.drives_dropout));
    return {};
  };
  if (mode.stateless) {
    TN_TRY(key, edit.input(kDropoutKey, Type(TN_I64, {2})));
    auto part = [&](int64_t i) { return b.op("Slice", {key, b.ints({i}), b.ints({i + 1})}); };
    return train_all({part(0), part(1), n_nodes});
  }
  TN_TRY(count, Slot::open(edit, "dropout/step", Type(TN_I64, {1})));
  TN_CHECK(train_all({b.ints({static_cast<int64_t>(mode.seed)}), count.before, n_nodes}));
  Value next = b.add(count.before, b.ints({1}));
  TN_CHECK(b.status());
  return count.close(edit, next);
}

}  // namespace

Result<Value> input_for_constant(EditView edit, Value constant) {
  std::string name(constant.name());
  Type type = constant.type();
  TN_CHECK(Status(services.edit->set_value_name(edit.raw, constant.id, str(name + "/initial"))));
  TN_TRY(input, edit.input(name, type));
  if (tn_any note = constant.note(kRestsWithNote); note.tag == TN_ANY_TEXT)
    TN_CHECK(edit.set_note(input.id, kRestsWithNote, note));
  TN_CHECK(edit.replace(constant, input));
  return input;
}

Result<std::vector<std::string>> to_training_mode(EditView edit, const TrainingMode& mode) {
  std::vector<std::string> statistics;
  std::vector<Node> dropouts;
  for (Node node : edit.graph().nodes())
    if (node.is("Dropout")) dropouts.push_back(node);
  for (const Norm& norm : mode.batch_statistics ? norms_of(edit.graph()) : std::vector<Norm>{}) {
    for (Node node : mode.stateless ? norm : Norm{})
      TN_CHECK(add_training_form(edit, node, 1).status());
    if (!mode.stateless && has_own_statistics(norm)) TN_CHECK(train_norm(edit, norm, &statistics));
  }
  TN_CHECK(train_dropouts(edit, dropouts, mode));
  return statistics;
}

std::vector<std::string_view> norms_without_own_statistics(Graph graph) {
  std::vector<std::string_view> names;
  for (const Norm& norm : norms_of(graph))
    for (Node node : has_own_statistics(norm) ? Norm{} : norm)
      names.push_back(node.name());
  return names;
}

}  // namespace tenon::trainer
