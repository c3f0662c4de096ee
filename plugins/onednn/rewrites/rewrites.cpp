// SPDX-License-Identifier: Apache-2.0
#include "rewrites/rewrites.hpp"

#include "rewrites/batch_parts.hpp"
#include "rewrites/centred_products.hpp"
#include "rewrites/early_quantize.hpp"
#include "rewrites/early_reductions.hpp"
#include "rewrites/expand.hpp"
#include "rewrites/join_activations.hpp"
#include "rewrites/late_scores.hpp"
#include "rewrites/many_inputs.hpp"
#include "rewrites/recompute.hpp"

namespace tenon::onednn {

void rewrite(Graph& graph) {
  expand(graph);
  cut_many_inputs(graph);
  centre_products(graph);
  join_activations(graph);
  quantize_early(graph);
  reduce_early(graph);
  delay_scores(graph);
  cut_batches(graph);
  recompute(graph);  // last: the order of nodes says which moment needs the most memory
}

}  // namespace tenon::onednn
