// SPDX-License-Identifier: Apache-2.0
// Before:  y = Conv(Pad(x, pads), w, b) with zeros around the image.
// After:   y = Conv(x, w, b) with the pads added to its own.
// Needs:   mode constant with value 0, pads constant, not negative, none on batch and channels, no
//          axes input; the Conv's auto_pad is NOTSET; nothing else uses the padded image.
#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

// Pads of the spatial axes, begins then ends; empty where the rule does not apply.
std::vector<int64_t> spatial_pads(Node pad) {
  std::optional<std::vector<int64_t>> all = constant_ints(pad.input(1));
  std::optional<double> value = scalar_of(pad.input(2));
  if (pad.attr_text("mode", "constant") != "constant" || !all || pad.input(3)) return {};
  if (pad.input(2) && (!value || *value != 0)) return {};
  size_t rank = all->size() / 2;
  if (rank < 3 || all->size() != 2 * rank) return {};
  std::vector<int64_t> out;
  for (size_t i = 0; i < all->size(); ++i) {
    int64_t amount = (*all)[i];
    bool spatial = i % rank >= 2;
    if (amount < 0 || (!spatial && amount != 0)) return {};
    if (spatial) out.push_back(amount);
  }
  return out;
}

Result<bool> rewrite(Rewriter& rewriter, Node conv) {
  Node pad = made_by(conv.input(0), "Pad");
  if (!pad || !is_private(pad.output())) return false;
  std::vector<int64_t> pads = spatial_pads(pad), own = conv.attr_ints("pads");
  if (pads.empty() || conv.attr_text("auto_pad", "NOTSET") != "NOTSET") return false;
  if (!own.empty() && own.size() != pads.size()) return false;
  for (size_t i = 0; i < own.size(); ++i)
    pads[i] += own[i];
  std::vector<Attr> attrs;
  for (uint64_t i = 0, n = services.graph->attr_count(conv.graph, conv.id); i < n; ++i) {
    std::string_view name = view(services.graph->attr_name(conv.graph, conv.id, i));
    if (name != "pads") attrs.emplace_back(name, conv.attr(name));
  }
  attrs.emplace_back("pads", pads);
  std::vector<Value> inputs = conv.inputs();
  inputs[0] = pad.input(0);
  TN_TRY(made, rewriter.op("Conv", inputs, attrs));
  return rewriter.replace(conv, made);
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  return walk(graph, settings, {"Conv"}, rewrite);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(pad_conv, "fusion.pad_conv", "a Conv pads by itself", tenon::fusion::run)
