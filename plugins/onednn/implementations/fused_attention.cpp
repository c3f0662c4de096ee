// SPDX-License-Identifier: Apache-2.0
// Attention as one step: in bf16 where the CPU has tiles (kernels/tile_attention.h), in f32
// (kernels/attention.h). Operands are read where they lie: heads of [batch, tokens, heads, depth]
// are strides.

#include <array>

#include "attention.hpp"
#include "attention_operands.hpp"
#include "cpu.hpp"
#include "kernels/attention.h"
#include "kernels/tile_attention.h"

namespace tenon::onednn {
namespace {

// Fewer rows of q do not pay for packing keys and values; a tile has 16.
constexpr int64_t kLeastRows = 16;

// In what the two kernels differ.
struct Form {
  const char* kernel;
  double element_bytes;
  void (*run)(const kernels::Context& context,
              const kernels::AttentionSizes& sizes,
              void* const* pointers);
};

// pointers: q, k, v, dst, mask.
template <class Args, class Element, void run(const kernels::Context&, const Args&)>
void run_form(const kernels::Context& context,
              const kernels::AttentionSizes& sizes,
              void* const* pointers) {
  Args args{sizes};
  args.q = static_cast<const Element*>(pointers[0]);
  args.k = static_cast<const Element*>(pointers[1]);
  args.v = static_cast<const Element*>(pointers[2]);
  args.dst.data = pointers[3];
  args.mask = static_cast<const float*>(pointers[4]);
  run(context, args);
}

constexpr Form kTiles{"tenon:amx_attention", 2,
                      run_form<kernels::TileAttentionArgs, uint16_t, kernels::tile_attention>};
constexpr Form kVectors{"tenon:attention", 4,
                        run_form<kernels::AttentionArgs, float, kernels::attention>};

kernels::AttentionSizes sizes_of(const Graph& graph, const Attention& attention) {
  const Dims& scores = graph.values[attention.scores].dims;
  const size_t rank = scores.size();
  kernels::AttentionSizes args;
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
              const Form& form,
              const kernels::AttentionSizes& sizes,
              const std::vector<Place>& places) {
  Step step{.name = lowering.graph().nodes[attention.context].name, .kernel = form.kernel};
  step.flops = 2.0 * static_cast<double>(sizes.outer * sizes.inner * sizes.rows * sizes.keys *
                                         (sizes.depth + sizes.width));
  step.bytes = form.element_bytes *
               static_cast<double>(sizes.outer * sizes.inner * (sizes.rows + sizes.keys) *
                                   (sizes.depth + sizes.width));
  step.places = places;
  step.always_succeeds = true;
  step.kernel_function = [sizes, run = form.run](const kernels::Context& context,
                                                 void* const* pointers) -> const char* {
    run(context, sizes, pointers);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

// planned: of q, k and v.
void build(const AttentionSite& site,
           const Form& form,
           kernels::AttentionSizes args,
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
  args.dst_strides = attention_strides(context, false);
  args.dst.type = context.type;
  if (attention.epilogue.quant) args.dst.quant = *attention.epilogue.quant;
  add_step(lowering, attention, form, args, places);
  mark_attention(lowering, attention);
}

using Takes = bool (*)(const kernels::AttentionSizes& sizes);

Offer offer_form(const AttentionSite& site, const Form& form, Takes takes) {
  const Lowering& lowering = site.lowering;
  const Graph& graph = lowering.graph();
  const Attention& attention = *site.attention;
  if (graph.values[attention.scores].dims.size() > 4) return refused("more than two axes in front");
  kernels::AttentionSizes sizes = sizes_of(graph, attention);
  if (sizes.rows < kLeastRows) return refused("fewer than 16 rows");
  const View q = planned_rows(lowering, attention.q);
  const View k = planned_real_matrix(lowering, attention.k);
  const View v = planned_real_matrix(lowering, attention.v);
  sizes.q_strides = attention_strides(q, false);
  sizes.k_strides = attention_strides(k, true);
  sizes.v_strides = attention_strides(v, false);
  sizes.dst_strides.column = 1;
  if (!takes(sizes)) return refused(kLongHeads);
  if (!fits_keys(graph, attention.front.mask, sizes.keys)) return refused(kShortMask);
  return accepted([&site, &form, sizes, q, k, v] { build(site, form, sizes, {q, k, v}); });
}

}  // namespace

Offer offer_tile_attention(const AttentionSite& site) {
  if (!computes_in_tiles()) return refused("this CPU has no AMX tiles");
  if (site.lowering.real_type() != ElementType::kBf16) return refused("not in bf16");
  return offer_form(site, kTiles, kernels::takes_tile_attention);
}

Offer offer_vector_attention(const AttentionSite& site) {
  const Lowering& lowering = site.lowering;
  if (lowering.real_type() != ElementType::kF32) return refused("not in fp32");
  if (may_be_int8(lowering.view(site.attention->q), lowering.view(site.attention->k)))
    return refused("scores of two quantized operands");
  if (!holds_floats(lowering.view(site.attention->v))) return refused(kQuantizedValues);
  return offer_form(site, kVectors, kernels::takes_attention);
}

}  // namespace tenon::onednn
