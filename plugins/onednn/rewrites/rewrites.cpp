// SPDX-License-Identifier: Apache-2.0
#include "rewrites.hpp"

#include "attention_grads.hpp"
#include "batch_parts.hpp"
#include "centred_products.hpp"
#include "channel_scales.hpp"
#include "conv_integer.hpp"
#include "depthwise_signals.hpp"
#include "early_quantize.hpp"
#include "early_reductions.hpp"
#include "early_updates.hpp"
#include "exact_numbers.hpp"
#include "expand.hpp"
#include "join_activations.hpp"
#include "join_signs.hpp"
#include "late_casts.hpp"
#include "late_scores.hpp"
#include "many_inputs.hpp"
#include "recompute.hpp"
#include "shape_reads.hpp"
#include "widen_halves.hpp"

namespace tenon::onednn {

void rewrite_before_claiming(Graph& graph) {
  widen_halves(graph);
  float_conv_integers(graph);
}

void rewrite(Graph& graph) {
  drop_shape_reads(graph);
  merge_attention_grads(graph);
  move_channel_scales(graph);
  make_signals_images(graph);
  expand(graph);
  cut_many_inputs(graph);
  centre_products(graph);
  join_activations(graph);
  join_signs(graph);
  quantize_early(graph);
  reduce_early(graph);
  delay_casts(graph);
  delay_scores(graph);
  cut_batches(graph);
  update_early(graph);
  recompute(graph);  // behind all that moves nodes: their order says when memory is fullest
  mark_exact_numbers(graph);
}

}  // namespace tenon::onednn
