// SPDX-License-Identifier: Apache-2.0
#include "twin.hpp"

#include <algorithm>
#include <numeric>

namespace tenon::recovery {

Result<Twins> Twins::of(Graph model) {
  Twins out;
  out.original_ = original_of(model);
  if (!out.original_.raw)
    return Status(TN_FAILED_PRECONDITION,
                  "expected a model that still knows its original, as passes that make it smaller "
                  "leave it: refit before the model is saved, quantized or loaded again");
  out.kept_ = nlohmann::json::parse(kept_note(model), nullptr, false);
  if (!out.kept_.is_object()) out.kept_ = nlohmann::json::object();
  std::vector<Value> ours = model.inputs(), theirs = out.original_.inputs();
  bool same = ours.size() == theirs.size();
  for (size_t i = 0; same && i < ours.size(); ++i)
    same = model.input_name(i) == out.original_.input_name(i);
  if (!same) return invalid("expected the inputs of the original, by the same names");
  return out;
}

Node Twins::named(Node like) const {
  for (Node node : original_.nodes())
    if (node.name() == like.name() && node.type() == like.type()) return node;
  return {};
}

Result<Twins::Twin> Twins::of(const Layer& layer) const {
  Node node = named(layer.node), last = named(layer.last);
  if (!node || !last) return unsupported("the original has no node of this name and operator");
  Value ours = layer.node.input(layer.weight), theirs = node.input(layer.weight);
  if (!theirs || !theirs.is_constant() || theirs.type().rank() != ours.type().rank())
    return unsupported("its weight is another one in the original");
  auto axis = static_cast<size_t>(layer.form.weight_out);
  std::vector<int64_t> channels(static_cast<size_t>(layer.n_out));
  std::iota(channels.begin(), channels.end(), int64_t{0});
  auto of_weight = kept_.find(std::string(ours.name()));
  if (of_weight != kept_.end() && of_weight->contains(std::to_string(axis)))
    channels = (*of_weight)[std::to_string(axis)].get<std::vector<int64_t>>();
  int64_t most = theirs.type().dims[axis];
  bool fits = static_cast<int64_t>(channels.size()) == layer.n_out &&
              std::ranges::all_of(channels, [&](int64_t c) { return c >= 0 && c < most; }) &&
              (of_weight != kept_.end() || most == layer.n_out);
  if (!fits)
    return unsupported(cat("it makes ", layer.n_out, " channels, the original ", most,
                           ", and nothing says which they are"));
  return Twin{last, channels};
}

}  // namespace tenon::recovery
