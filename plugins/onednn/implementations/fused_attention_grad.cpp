// SPDX-License-Identifier: Apache-2.0
// The gradient of attention as one step: in bf16 where the CPU has tiles
// (kernels/tile_attention_grad.h), in f32 (kernels/attention_grad.h). Operands are read, and
// results written, where they lie.

#include "attention_grad.hpp"
#include "attention_operands.hpp"
#include "cpu.hpp"
#include "kernels/attention_grad.h"
#include "kernels/tile_attention_grad.h"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using Sizes = kernels::AttentionGradSizes;

// In what the two kernels differ.
struct Form {
  const char* kernel;
  double element_bytes;
  bool has_mask_by_keys;  // rows of a mask lie side by side, as lanes do
  void (*run)(const kernels::Context& context, const Sizes& sizes, void* const* pointers);
};

// pointers: q, k, v, dy, mask, dq, dk, dv.
template <class Args, class Element, void run(const kernels::Context&, const Args&)>
void run_form(const kernels::Context& context, const Sizes& sizes, void* const* pointers) {
  Args args{sizes};
  args.q = static_cast<const Element*>(pointers[0]);
  args.k = static_cast<const Element*>(pointers[1]);
  args.v = static_cast<const Element*>(pointers[2]);
  args.dy = static_cast<const Element*>(pointers[3]);
  args.mask = static_cast<const float*>(pointers[4]);
  args.dq.data = pointers[5];
  args.dk.data = pointers[6];
  args.dv.data = pointers[7];
  run(context, args);
}

constexpr Form kTiles{
    "tenon:amx_attention_grad", 2, true,
    run_form<kernels::TileAttentionGradArgs, uint16_t, kernels::tile_attention_grad>};
constexpr Form kVectors{"tenon:attention_grad", 4, false,
                        run_form<kernels::AttentionGradArgs, float, kernels::attention_grad>};

Sizes sizes_of(const AttentionGradSite& site) {
  const Graph& graph = site.lowering.graph();
  const Dims& q = graph.value(site.q).dims;
  const size_t rank = q.size();
  Sizes sizes;
  sizes.outer = rank == 4 ? q[0] : 1;
  sizes.inner = q[rank - 3];
  sizes.rows = q[rank - 2];
  sizes.depth = q[rank - 1];
  sizes.keys = graph.value(site.k).dims.back();
  sizes.width = graph.value(site.v).dims.back();
  sizes.scale = site.scale;
  return sizes;
}

View read_mask(Lowering& lowering, int value, bool is_by_keys) {
  if (!is_by_keys) return lowering.read_row_major(value, ElementType::kF32);
  View rows{.dims = lowering.graph().value(value).dims};
  rows.strides = rows.dims;
  rows = transposed(rows);
  rows.strides = row_major_strides(rows.dims);
  return lowering.read(value, ElementType::kF32, transposed(rows).strides);
}

Step step_of(const AttentionGradSite& site, const Form& form, const Sizes& sizes) {
  Step step{.name = site.node.name, .kernel = form.kernel, .always_succeeds = true};
  const auto pairs = static_cast<double>(sizes.outer * sizes.inner);
  step.flops = 2.0 * pairs * static_cast<double>(sizes.rows * sizes.keys) *
               static_cast<double>(3 * sizes.depth + 2 * sizes.width);
  step.bytes = 2.0 * form.element_bytes * pairs *
               static_cast<double>((sizes.rows + sizes.keys) * (sizes.depth + sizes.width));
  step.kernel_function = [sizes, run = form.run](const kernels::Context& context,
                                                 void* const* pointers) -> const char* {
    run(context, sizes, pointers);
    return nullptr;
  };
  return step;
}

void build(const AttentionGradSite& site, const Form& form, Sizes args) {
  Lowering& lowering = site.lowering;
  auto read = [&](int value, const View& planned) {
    return lowering.read(value, planned.type, planned.strides);
  };
  const View q = read(site.q, planned_rows(lowering, site.q));
  const View k = read(site.k, planned_real_matrix(lowering, site.k));
  const View v = read(site.v, planned_real_matrix(lowering, site.v));
  const View dy = read(site.dy, planned_rows(lowering, site.dy));
  args.q_strides = attention_strides(q, false);
  args.k_strides = attention_strides(k, true);
  args.v_strides = attention_strides(v, false);
  args.dy_strides = attention_strides(dy, false);
  std::vector<Place> places = {place_of(q), place_of(k), place_of(v), place_of(dy)};
  places.resize(8);
  if (site.mask != kNone) {
    const View mask = read_mask(lowering, site.mask, form.has_mask_by_keys);
    args.mask_strides = mask_strides(mask);
    places[4] = place_of(mask);
  }
  const AttentionGradViews made = make_attention_grads(site);
  auto write = [&](const View& view, size_t place, kernels::AttentionGradTarget* to) {
    if (!view.exists()) return;
    to->type = view.type;
    to->strides = attention_strides(view, false);
    places[place] = place_of(view);
  };
  write(made.dq, 5, &args.dq);
  write(made.dk, 6, &args.dk);
  write(made.dv, 7, &args.dv);
  Step step = step_of(site, form, args);
  step.places = std::move(places);
  lowering.add_step(std::move(step));
}

using Takes = bool (*)(const Sizes& sizes);

Offer offer_form(const AttentionGradSite& site, const Form& form, Takes takes) {
  const Sizes sizes = sizes_of(site);
  if (!takes(sizes)) return refused(kLongHeads);
  if (!fits_keys(site.lowering.graph(), site.mask, sizes.keys)) return refused(kShortMask);
  return accepted([&site, &form, sizes] { build(site, form, sizes); });
}

}  // namespace

Offer offer_tile_attention_grad(const AttentionGradSite& site) {
  if (!computes_in_tiles()) return refused("this CPU has no AMX tiles");
  if (site.lowering.real_type() != ElementType::kBf16) return refused("not in bf16");
  return offer_form(site, kTiles, kernels::takes_tile_attention_grad);
}

Offer offer_vector_attention_grad(const AttentionGradSite& site) {
  if (site.lowering.real_type() != ElementType::kF32) return refused("not in fp32");
  return offer_form(site, kVectors, kernels::takes_attention_grad);
}

}  // namespace tenon::onednn
