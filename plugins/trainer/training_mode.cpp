// SPDX-License-Identifier: Apache-2.0
#include "training_mode.hpp"

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

// Inputs 3 and 4, mean and variance; false where they are not this node's own constants.
bool has_own_statistics(Node node) {
  for (uint64_t i : {3, 4}) {
    Value value = node.input(i);
    if (!value || !value.is_constant() || value.consumer_count() != 1) return false;
  }
  return true;
}

// statistics: the names of the running ones, which become states; null: they stay as they are.
Status train_batch_norm(EditView edit, Node node, std::vector<std::string>* statistics) {
  std::vector<Value> inputs = node.inputs();
  for (size_t i : {3u, 4u}) {
    if (!statistics) break;
    statistics->emplace_back(inputs[i].name());
    TN_TRY(input, input_for_constant(edit, inputs[i]));
    inputs[i] = input;
  }
  std::string name(node.name());
  TN_TRY(made, edit.add({.type = "BatchNormalization",
                         .inputs = inputs,
                         .attrs = {{"training_mode", 1},
                                   {"epsilon", node.attr_float("epsilon", 1e-5)},
                                   {"momentum", node.attr_float("momentum", 0.9)}},
                         .n_outputs = statistics ? 3u : 1u,
                         .name = cat(name, "/training"),
                         .scope = node.scope()}));
  TN_CHECK(replace_node(edit, node, made.outputs()));
  for (uint64_t i : {3, 4}) {
    if (!statistics) break;
    Slot state{std::string(inputs[i].name()), inputs[i]};
    TN_CHECK(state.close(edit, made.output(i - 2)));
  }
  return {};
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
  for (Node node : edit.graph().nodes()) {
    if (node.is("Dropout")) dropouts.push_back(node);
    if (!mode.batch_statistics || !node.is("BatchNormalization")) continue;
    if (mode.stateless || has_own_statistics(node))
      TN_CHECK(train_batch_norm(edit, node, mode.stateless ? nullptr : &statistics));
  }
  TN_CHECK(train_dropouts(edit, dropouts, mode));
  return statistics;
}

}  // namespace tenon::trainer
