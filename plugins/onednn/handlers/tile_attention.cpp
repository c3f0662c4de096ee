// SPDX-License-Identifier: Apache-2.0
// Attention as one step (kernels/tile_attention.h), with precision=bf16 where the CPU has tiles.
// Operands are read where they lie: heads of [batch, tokens, heads, depth] are strides.

#include "kernels/tile_attention.h"

#include "attention.hpp"
#include "product.hpp"

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

// The mask as f32 with its last axis dense, aligned with the scores from their last axis on.
std::optional<View> mask_view(Lowering& lowering, const Attention& attention) {
  const int mask = attention.front.mask;
  const Dims& dims = lowering.graph().values[mask].dims;
  const Dims& scores = lowering.graph().values[attention.scores].dims;
  if (dims.empty() || dims.size() > 4 || dims.back() != scores.back()) return {};
  return lowering.read_row_major(mask, ElementType::kF32);
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

}  // namespace

bool lower_tile_attention(Lowering& lowering, const Attention& attention) {
  const Graph& graph = lowering.graph();
  const size_t rank = graph.values[attention.scores].dims.size();
  const bool is_bf16 = computes_in_tiles() && lowering.real_type() == ElementType::kBf16;
  if (!is_bf16 || rank > 4) return false;
  if (may_be_int8(lowering.view(attention.q), lowering.view(attention.k))) return false;
  kernels::TileAttentionArgs args = sizes_of(graph, attention);
  if (args.rows < kLeastRows) return false;
  View q = real_matrix(lowering, attention.q);
  if (q.strides[rank - 1] != 1) q = lowering.read_row_major(attention.q, ElementType::kBf16);
  const View k = real_matrix(lowering, attention.k);
  const View v = real_matrix(lowering, attention.v);
  args.q_strides = strides_of(q, false);
  args.k_strides = strides_of(k, true);
  args.v_strides = strides_of(v, false);
  args.dst_strides.column = 1;
  if (!kernels::takes_tile_attention(args)) return false;
  std::vector<Place> places = {place_of(q), place_of(k), place_of(v), {}, {}};
  if (attention.front.mask != kNone) {
    const std::optional<View> mask = mask_view(lowering, attention);
    if (!mask) return false;
    args.mask_strides = mask_strides(*mask);
    places[4] = place_of(*mask);
  }
  const View context = make_context(lowering, attention);
  places[3] = place_of(context);
  args.dst_strides = strides_of(context, false);
  args.dst.type = context.type;
  if (attention.tail.quant) args.dst.quant = *attention.tail.quant;
  add_step(lowering, attention, args, places);
  mark_attention(lowering, attention);
  return true;
}

}  // namespace tenon::onednn
