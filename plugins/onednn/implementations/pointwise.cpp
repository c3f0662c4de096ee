// SPDX-License-Identifier: Apache-2.0
// Pointwise operators: all that have a scalar expression, and Cast.

#include "choice.hpp"
#include "exact.hpp"
#include "handlers.hpp"
#include "lists.hpp"
#include "lowering/pointwise_group.hpp"
#include "lowering/row_group.hpp"
#include "lowering/scalarized_group.hpp"
#include "lowering/softmax_front.hpp"
#include "narrow_cast.hpp"

namespace tenon::onednn {

std::string refuse_pointwise(const Graph& graph, const Node& node) {
  if (graph.values[node.outputs[0]].dims.size() > 8) return "more than eight axes";
  return is_pointwise(graph, node) ? "" : refuse_exact(graph, node);
}

namespace {

struct PointwiseSite {
  Lowering& lowering;
  int index;
  int scores = kNone;                      // that the front begins with
  std::optional<SoftmaxFront> front = {};  // in front of a Softmax
  std::function<void()> rows = {};         // with a reduction of its rows
  std::function<void()> scalars = {};      // with moves of small tensors
};

Offer offer_front(const PointwiseSite& site) {
  if (!site.front) return refused("no factor or mask in front of a Softmax");
  return accepted([&site] { lower_softmax_front(site.lowering, site.scores, *site.front); });
}

Offer offer_rows(const PointwiseSite& site) {
  if (!site.rows) return refused("no reduction of its rows, or none that they can be read with");
  return accepted(site.rows);
}

Offer offer_scalars(const PointwiseSite& site) {
  if (!site.scalars) return refused("no moves of small tensors around it");
  return accepted(site.scalars);
}

Offer offer_logic(const PointwiseSite& site) {
  if (std::string why = refuse_logic(site.lowering, site.index); !why.empty())
    return refused(std::move(why));
  return accepted([&site] { lower_exact(site.lowering, site.index); });
}

Offer offer_group(const PointwiseSite& site) {
  return accepted([&site] { PointwiseGroup(site.lowering, site.index).lower(); });
}

constexpr Implementation<PointwiseSite> kPointwise[] = {
    {"softmax with its front", offer_front},
    {"scalarized", offer_scalars},
    {"rows with their reduction", offer_rows},
    {"logic", offer_logic},
    {"pointwise", offer_group},
};

// Sets the front where one of the inputs is what only the node reads.
void find_front(PointwiseSite& site) {
  Lowering& lowering = site.lowering;
  for (int input : lowering.graph().nodes[site.index].inputs) {
    if (input == kNone || !lowering.is_available(input) || lowering.is_constant(input)) continue;
    if (lowering.graph().only_user(input) != site.index) continue;
    site.scores = input;
    site.front = find_softmax_front(lowering, input);
    if (site.front) return;
  }
}

}  // namespace

Names pointwise_names() {
  return names_of(kPointwise);
}

void lower_pointwise(Lowering& lowering, int node) {
  if (!is_pointwise(lowering.graph(), lowering.graph().nodes[node]))
    return lower_exact(lowering, node);
  PointwiseSite site{lowering, node};
  find_front(site);
  if (!site.front) site.scalars = find_scalarized_group(lowering, node);
  if (!site.front && !site.scalars) site.rows = find_row_group(lowering, node);
  choose<PointwiseSite>(lowering, site, kPointwise);
}

std::string refuse_cast(const Graph& graph, const Node& node) {
  if (is_narrow_cast(graph, node)) return {};
  return is_pointwise(graph, node) ? "" : refuse_exact(graph, node);
}

void lower_cast(Lowering& lowering, int node) {
  if (is_narrow_cast(lowering.graph(), lowering.graph().nodes[node]))
    return lower_narrow_cast(lowering, node);
  lower_pointwise(lowering, node);
}

}  // namespace tenon::onednn
