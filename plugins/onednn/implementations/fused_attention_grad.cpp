// SPDX-License-Identifier: Apache-2.0
// The gradient of attention as one step: in bf16 where the CPU has tiles
// (kernels/tile_attention_grad.h). Operands are read, and results written, where they lie.

#include "attention_grad.hpp"
#include "attention_operands.hpp"
#include "cpu.hpp"
#include "kernels/tile_attention_grad.h"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using Args = kernels::AttentionGradArgs;

Args sizes_of(const AttentionGradSite& site) {
  const Graph& graph = site.lowering.graph();
  const Dims& q = graph.value(site.q).dims;
  const size_t rank = q.size();
  Args args;
  args.outer = rank == 4 ? q[0] : 1;
  args.inner = q[rank - 3];
  args.rows = q[rank - 2];
  args.depth = q[rank - 1];
  args.keys = graph.value(site.k).dims.back();
  args.width = graph.value(site.v).dims.back();
  args.scale = site.scale;
  return args;
}

// Rows of a mask lie side by side, as lanes do.
View read_mask(Lowering& lowering, int value) {
  View rows{.dims = lowering.graph().value(value).dims};
  rows.strides = rows.dims;
  rows = transposed(rows);
  rows.strides = row_major_strides(rows.dims);
  return lowering.read(value, ElementType::kF32, transposed(rows).strides);
}

Step step_of(const AttentionGradSite& site, const Args& args) {
  Step step{.name = site.node.name, .kernel = "tenon:amx_attention_grad"};
  const auto pairs = static_cast<double>(args.outer * args.inner);
  step.flops = 2.0 * pairs * static_cast<double>(args.rows * args.keys) *
               static_cast<double>(3 * args.depth + 2 * args.width);
  step.bytes = 4.0 * pairs * static_cast<double>((args.rows + args.keys) * (args.depth + args.width));
  step.always_succeeds = true;
  step.kernel_function = [args](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    Args call = args;
    call.q = static_cast<const uint16_t*>(pointers[0]);
    call.k = static_cast<const uint16_t*>(pointers[1]);
    call.v = static_cast<const uint16_t*>(pointers[2]);
    call.dy = static_cast<const uint16_t*>(pointers[3]);
    call.mask = static_cast<const float*>(pointers[4]);
    call.dq.data = pointers[5];
    call.dk.data = pointers[6];
    call.dv.data = pointers[7];
    kernels::tile_attention_grad(context, call);
    return nullptr;
  };
  return step;
}

void build(const AttentionGradSite& site, Args args) {
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
    const View mask = read_mask(lowering, site.mask);
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
  Step step = step_of(site, args);
  step.places = std::move(places);
  lowering.add_step(std::move(step));
}

}  // namespace

Offer offer_tile_attention_grad(const AttentionGradSite& site) {
  if (!computes_in_tiles()) return refused("this CPU has no AMX tiles");
  if (site.lowering.real_type() != ElementType::kBf16) return refused("not in bf16");
  const Args args = sizes_of(site);
  if (!kernels::takes_tile_attention_grad(args)) return refused(kLongHeads);
  if (!fits_keys(site.lowering.graph(), site.mask, args.keys)) return refused(kShortMask);
  return accepted([&site, args] { build(site, args); });
}

}  // namespace tenon::onednn
