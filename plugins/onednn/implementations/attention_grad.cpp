// SPDX-License-Identifier: Apache-2.0
// The gradient of attention in parts (attention_parts.hpp): scores, weights, their gradients, and
// the products that read both.

#include "attention_grad.hpp"

#include "attention_parts.hpp"
#include "handlers.hpp"
#include "kernels/softmax.h"
#include "lists.hpp"
#include "product.hpp"
#include "rewrites/attention_grads.hpp"

namespace tenon::onednn {
namespace {

// ds = scale * w * (dw - sum(dw * w)) over the last axis, in place of dw.
void add_softmax_grad(
    Lowering& lowering, const std::string& name, float scale, const View& w, const View& dw) {
  kernels::SoftmaxGradArgs args;
  args.y.type = w.type;
  args.dy.type = dw.type;
  args.dst.type = dw.type;
  args.n = w.dims.back();
  args.rows = w.count() / args.n;
  args.scale = scale;
  Step step{.name = name, .kernel = "tenon:softmax_grad", .always_succeeds = true};
  step.flops = 4.0 * static_cast<double>(w.count());
  step.bytes = static_cast<double>(w.bytes() + 2 * dw.bytes());
  step.places = {place_of(w), place_of(dw)};
  step.kernel_function = [args](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    kernels::SoftmaxGradArgs call = args;
    call.y.data = pointers[0];
    call.dy.data = pointers[1];
    call.dst.data = pointers[1];
    kernels::softmax_grad(context, call);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

class InParts {
 public:
  explicit InParts(const AttentionGradSite& site)
      : site_(site),
        lowering_(site.lowering),
        dims_(scores_dims(site)),
        cut_(choose_cut({.type = site.lowering.real_type(), .dims = dims_},
                        site.lowering.options().threads,
                        2)) {}

  void build() {
    const View q = real_matrix(lowering_, site_.q);
    const View k = real_matrix(lowering_, site_.k);
    const View v = real_matrix(lowering_, site_.v);
    const View dy = real_matrix(lowering_, site_.dy);
    const auto [dq, dk, dv] = make_attention_grads(site_);
    const View w = scratch_part(lowering_, lowering_.real_type(), dims_, cut_);
    const View dw = scratch_part(lowering_, lowering_.real_type(), dims_, cut_);
    for (int64_t part = 0; part < cut_.n_parts; ++part) {
      auto of = [&](const View& whole) { return part_of(whole, cut_, dims_.size(), part); };
      multiply(of(q), of(k), w);
      normalize(w, part);
      if (dv.exists()) multiply(transposed(w), of(dy), of(dv));
      multiply(of(dy), transposed(of(v)), dw);
      add_softmax_grad(lowering_, site_.node.name, site_.scale, w, dw);
      if (dq.exists()) multiply(dw, transposed(of(k)), of(dq));
      if (dk.exists()) multiply(transposed(dw), of(q), of(dk));
    }
  }

 private:
  static Dims scores_dims(const AttentionGradSite& site) {
    const Graph& graph = site.lowering.graph();
    Dims dims = graph.value(site.q).dims;
    dims.back() = graph.value(site.k).dims.back();
    return dims;
  }

  void multiply(const View& a, const View& b, const View& c) {
    multiply_part(lowering_, site_.node.name, a, b, c);
  }

  void normalize(const View& scores, int64_t part) {
    SoftmaxFront front;
    front.scale = site_.scale;
    if (site_.mask == kNone)
      return lowering_.add_step(softmax_step(site_.node, front, scores, scores, nullptr));
    const View mask =
        part_of(lowering_.read_row_major(site_.mask, ElementType::kF32), cut_, dims_.size(), part);
    lowering_.add_step(softmax_step(site_.node, front, scores, scores, &mask));
  }

  const AttentionGradSite& site_;
  Lowering& lowering_;
  Dims dims_;  // of the scores
  Cut cut_;
};

// is_transposed: the value's last axis counts rows.
View make_rows(Lowering& lowering, int value, bool is_transposed) {
  if (value == kNone) return {};
  View plan{.dims = lowering.graph().value(value).dims,
            .strides = strides_behind_transposes(lowering.graph(), value)};
  View rows = is_transposed ? transposed(plan) : plan;
  if (rows.strides.back() != 1) rows.strides = row_major_strides(rows.dims);
  plan.strides = (is_transposed ? transposed(rows) : rows).strides;
  const View made = lowering.make(value, lowering.stored_type(value), plan.strides);
  return is_transposed ? transposed(made) : made;
}

Offer offer_parts(const AttentionGradSite& site) {
  return accepted([&site] { InParts(site).build(); });
}

constexpr Implementation<AttentionGradSite> kAttentionGrads[] = {
    {"amx attention gradient", offer_tile_attention_grad},
    {"attention gradient", offer_vector_attention_grad},
    {"attention gradient in parts", offer_parts},
};

}  // namespace

AttentionGradViews make_attention_grads(const AttentionGradSite& site) {
  return {make_rows(site.lowering, site.dq, false),
          make_rows(site.lowering, site.dk, !site.is_dk_by_keys),
          make_rows(site.lowering, site.dv, false)};
}

Names attention_grad_names() {
  return names_of(kAttentionGrads);
}

std::string refuse_attention_grad(const Graph&, const Node&) {
  return {};  // made by a rewrite, from nodes that were claimed
}

void lower_attention_grad(Lowering& lowering, int index) {
  const Node& node = lowering.graph().node(index);
  const AttentionGradSite site{lowering,
                               node,
                               node.inputs[0],
                               node.inputs[1],
                               node.inputs[2],
                               node.inputs[3],
                               node.inputs[4],
                               node.outputs[0],
                               node.outputs[1],
                               node.outputs[2],
                               node.integer(kDkByKeys, 0) != 0,
                               static_cast<float>(node.real("scale", 1.0))};
  choose<AttentionGradSite>(lowering, site, kAttentionGrads);
}

}  // namespace tenon::onednn
