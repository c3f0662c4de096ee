// SPDX-License-Identifier: Apache-2.0
// Attention as one step (kernels/tile_attention.h), with precision=bf16 where the CPU has tiles.
// Operands are read where they lie: heads of [batch, tokens, heads, depth] are strides.

#include "kernels/tile_attention.h"

#include <array>

#include "attention.hpp"
#include "cpu.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kLeastRows = 16;  // of a tile

using Strides = kernels::AttentionStrides;

// Of a view of rank 3 or 4; axes of extent 1 broadcast.
Strides strides_of(const View& view, bool is_transposed) {
  const size_t rank = view.dims.size();
  auto stride = [&](size_t axis) { return view.dims[axis] == 1 ? 0 : view.strides[axis]; };
  Strides made;
  if (rank >= 4) made.outer = stride(rank - 4);
  if (rank >= 3) made.inner = stride(rank - 3);
  made.row = view.strides[rank - (is_transposed ? 1 : 2)];
  made.column = view.strides[rank - (is_transposed ? 2 : 1)];
  return made;
}

// The mask is read as f32 with its last axis dense, aligned with the scores from their last axis
// on.
bool has_fit_mask(const Graph& graph, const Attention& attention) {
  const int mask = attention.front.mask;
  if (mask == kNone) return true;
  const Dims& dims = graph.values[mask].dims;
  return !dims.empty() && dims.size() <= 4 &&
         dims.back() == graph.values[attention.scores].dims.back();
}

Strides mask_strides(const View& mask) {
  const size_t rank = mask.dims.size();
  auto stride = [&](size_t from_last) {
    if (from_last > rank || mask.dims[rank - from_last] == 1) return int64_t{0};
    return mask.strides[rank - from_last];
  };
  return {.outer = stride(4), .inner = stride(3), .row = stride(2), .column = 1};
}

kernels::TileAttentionArgs sizes_of(const Graph& graph, const Attention& attention) {
  const Dims& scores = graph.values[attention.scores].dims;
  const size_t rank = scores.size();
  kernels::TileAttentionArgs args;
  args.outer = rank == 4 ? scores[0] : 1;
  args.inner = scores[rank - 3];
  args.rows = scores[rank - 2];
  args.keys = scores[rank - 1];
  args.depth = graph.values[attention.q].dims[rank - 1];
  args.width = graph.values[attention.v].dims[rank - 1];
  args.scale = attention.front.scale;
  return args;
}

void add_step(Lowering& lowering,
              const Attention& attention,
              const kernels::TileAttentionArgs& args,
              const std::vector<Place>& places) {
  Step step{.name = lowering.graph().nodes[attention.context].name,
            .kernel = "tenon:amx_attention"};
  step.flops = 2.0 * static_cast<double>(args.outer * args.inner * args.rows * args.keys *
                                         (args.depth + args.width));
  step.bytes = static_cast<double>(
      args.outer * args.inner *
      (args.rows * (args.depth + args.width) + args.keys * (args.depth + args.width)) * 2);
  step.places = places;
  step.always_succeeds = true;
  step.kernel_function = [args](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    kernels::TileAttentionArgs call = args;
    call.q = static_cast<const uint16_t*>(pointers[0]);
    call.k = static_cast<const uint16_t*>(pointers[1]);
    call.v = static_cast<const uint16_t*>(pointers[2]);
    call.dst.data = pointers[3];
    call.mask = static_cast<const float*>(pointers[4]);
    kernels::tile_attention(context, call);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

// Heads of [batch, tokens, heads, depth] are strides, but depth lies side by side.
View planned_query(const Lowering& lowering, const Attention& attention) {
  View q = planned_real_matrix(lowering, attention.q);
  if (q.strides.back() != 1) q.strides = row_major_strides(q.dims);
  return q;
}

// planned: of q, k and v.
void build(const AttentionSite& site,
           kernels::TileAttentionArgs args,
           const std::array<View, 3>& planned) {
  Lowering& lowering = site.lowering;
  const Attention& attention = *site.attention;
  const std::array<int, 3> values = {attention.q, attention.k, attention.v};
  std::vector<Place> places;
  for (size_t i = 0; i < values.size(); ++i)
    places.push_back(place_of(lowering.read(values[i], planned[i].type, planned[i].strides)));
  places.resize(5);
  if (attention.front.mask != kNone) {
    const View mask = lowering.read_row_major(attention.front.mask, ElementType::kF32);
    args.mask_strides = mask_strides(mask);
    places[4] = place_of(mask);
  }
  const View context = make_context(lowering, attention);
  places[3] = place_of(context);
  args.dst_strides = strides_of(context, false);
  args.dst.type = context.type;
  if (attention.tail.quant) args.dst.quant = *attention.tail.quant;
  add_step(lowering, attention, args, places);
  mark_attention(lowering, attention);
}

}  // namespace

Offer offer_tile_attention(const AttentionSite& site) {
  const Lowering& lowering = site.lowering;
  const Graph& graph = lowering.graph();
  const Attention& attention = *site.attention;
  const size_t rank = graph.values[attention.scores].dims.size();
  if (!computes_in_tiles()) return refused("this CPU has no AMX tiles");
  if (lowering.real_type() != ElementType::kBf16) return refused("not in bf16");
  if (rank > 4) return refused("more than two axes in front");
  if (may_be_int8(lowering.view(attention.q), lowering.view(attention.k)))
    return refused("scores of two quantized operands");
  kernels::TileAttentionArgs args = sizes_of(graph, attention);
  if (args.rows < kLeastRows) return refused("fewer than 16 rows");
  const View q = planned_query(lowering, attention);
  const View k = planned_real_matrix(lowering, attention.k);
  const View v = planned_real_matrix(lowering, attention.v);
  args.q_strides = strides_of(q, false);
  args.k_strides = strides_of(k, true);
  args.v_strides = strides_of(v, false);
  args.dst_strides.column = 1;
  if (!kernels::takes_tile_attention(args)) return refused("too many keys or columns a head");
  if (!has_fit_mask(graph, attention)) return refused("the mask is not as long as the scores");
  return accepted([&site, args, q, k, v] { build(site, args, {q, k, v}); });
}

}  // namespace tenon::onednn
