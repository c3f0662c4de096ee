// SPDX-License-Identifier: Apache-2.0
#include "recurrent.hpp"

namespace tenon::layers {

Result<Recurrent> Recurrent::create(tn_ctx* ctx, const Options& options, const Cell& cell) {
  Recurrent made;
  made.cell_ = cell;
  made.hidden_ = options.integer("hidden");
  made.layers_ = options.integer("layers");
  made.directions_ = options.flag("bidirectional") ? 2 : 1;
  made.dropout_ = options.number("dropout");
  made.has_bias_ = options.flag("bias");
  TN_TRY(init, Initializers::from(ctx, options));
  made.init_ = std::move(init);
  return made;
}

// Gates in PyTorch's order become ONNX's, with an axis for the direction in front.
Value Recurrent::reordered(LayerUse& use, Value rows) const {
  auto n = static_cast<int64_t>(cell_.gates.size());
  Node parts = use.scoped({.type = "Split",
                           .inputs = {rows},
                           .attrs = {{"axis", 0}, {"num_outputs", n}},
                           .n_outputs = static_cast<uint64_t>(n)});
  if (!parts) return {};
  std::vector<Value> ordered;
  for (int64_t gate : cell_.gates)
    ordered.push_back(parts.output(static_cast<uint64_t>(gate)));
  return use.op("Unsqueeze", {use.op("Concat", ordered, {{"axis", 0}}), use.ints({0})});
}

Recurrent::Operands Recurrent::operands(LayerUse& use, int64_t layer, int64_t in) const {
  int64_t rows = static_cast<int64_t>(cell_.gates.size()) * hidden_;
  std::vector<Value> w, r, b;
  for (int64_t d = 0; d < directions_; ++d) {
    std::string end = cat("_l", layer, d ? "_reverse" : "");
    std::string names[] = {"weight_ih" + end, "weight_hh" + end, "bias_ih" + end, "bias_hh" + end};
    w.push_back(
        reordered(use, use.parameter({names[0], {rows, in}, &init_.weight, hidden_, hidden_})));
    r.push_back(reordered(
        use, use.parameter({names[1], {rows, hidden_}, &init_.weight, hidden_, hidden_})));
    if (!has_bias_) continue;
    std::vector<Value> both;
    for (int i : {2, 3})
      both.push_back(
          reordered(use, use.parameter({names[i], {rows}, &init_.bias, hidden_, hidden_})));
    b.push_back(use.op("Concat", both, {{"axis", 1}}));
  }
  auto joined = [&](const std::vector<Value>& parts) {
    return parts.size() == 1 ? parts[0] : use.op("Concat", parts, {{"axis", 0}});
  };
  return {joined(w), joined(r), b.empty() ? Value{} : joined(b)};
}

// The part of a given first state that belongs to this layer.
Value Recurrent::state(LayerUse& use, size_t input, int64_t layer) const {
  Value all = use.input(input);
  if (!all || layers_ == 1) return all;
  return use.op("Slice", {all, use.ints({layer * directions_}),
                          use.ints({(layer + 1) * directions_}), use.ints({0})});
}

Result<std::vector<Value>> Recurrent::build(LayerUse& use) const {
  size_t most = cell_.has_memory ? 3 : 2;
  Type type = use.input(0) ? use.input(0).type() : Type{};
  if (use.n_inputs() < 1 || use.n_inputs() > most)
    return invalid(cat("inputs: expected 1 to ", most, ", got ", use.n_inputs()));
  if (!type.ranked || type.rank() != 3 || !is_float(type.dtype))
    return invalid(cat("input 0: expected floats [batch, steps, features], got ", type_text(type)));
  TN_TRY(in, known_size(type, 2, "features"));
  Value x = use.transpose(use.input(0), {1, 0, 2});
  std::vector<Value> hidden, memory;
  for (int64_t layer = 0; layer < layers_; ++layer) {
    if (layer > 0 && dropout_ > 0) x = use.op("Dropout", {x, use.number(dropout_, TN_F32)});
    Operands of = operands(use, layer, layer == 0 ? in : directions_ * hidden_);
    std::vector<Value> inputs{x, of.w, of.r, of.b, Value{}, state(use, 1, layer)};
    if (cell_.has_memory) inputs.push_back(state(use, 2, layer));
    std::vector<Attr> attrs{{"hidden_size", hidden_},
                            {"direction", directions_ == 2 ? "bidirectional" : "forward"}};
    // PyTorch's GRU has the reset gate behind the product.
    if (cell_.op == "GRU") attrs.emplace_back("linear_before_reset", 1);
    Node made = use.scoped({.type = cell_.op,
                            .inputs = inputs,
                            .attrs = attrs,
                            .n_outputs = cell_.has_memory ? 3u : 2u});
    TN_CHECK(use.status());
    // [t, directions, b, hidden] to [t, b, directions hidden]
    x = directions_ == 1 ? use.op("Squeeze", {made.output(0), use.ints({1})})
                         : use.op("Reshape", {use.transpose(made.output(0), {0, 2, 1, 3}),
                                              use.ints({0, 0, 2 * hidden_})});
    hidden.push_back(made.output(1));
    if (cell_.has_memory) memory.push_back(made.output(2));
  }
  auto joined = [&](const std::vector<Value>& parts) {
    return parts.size() == 1 ? parts[0] : use.op("Concat", parts, {{"axis", 0}});
  };
  std::vector<Value> out{use.transpose(x, {1, 0, 2}), joined(hidden)};
  if (cell_.has_memory) out.push_back(joined(memory));
  return use.outputs(out);
}

}  // namespace tenon::layers
