// SPDX-License-Identifier: Apache-2.0
// Attention in parts (attention_parts.hpp): scores, their Softmax, their product with the values.

#include "attention.hpp"

#include "attention_parts.hpp"
#include "lists.hpp"

namespace tenon::onednn {
namespace {

bool can_be_real(const View& view) {
  return holds_floats(view) || (holds_quantized(view) && view.channels == nullptr);
}

}  // namespace

std::optional<Attention> find_attention(Lowering& lowering, int node) {
  const Graph& graph = lowering.graph();
  const Node& first = graph.nodes[node];
  Attention found{.scores = first.outputs[0], .q = first.inputs[0], .k = first.inputs[1]};
  const size_t rank = graph.values[found.scores].dims.size();
  if (rank < 3) return std::nullopt;
  std::optional<SoftmaxFront> front = find_softmax_front(lowering, found.scores);
  if (!front || graph.nodes[front->softmax].op != "Softmax") return std::nullopt;
  found.front = *front;
  found.weights = graph.nodes[front->softmax].outputs[0];
  found.context = graph.only_user(found.weights);
  if (found.context == kNone) return std::nullopt;
  const Node& last = graph.nodes[found.context];
  if (last.op != "MatMul" || last.inputs[0] != found.weights) return std::nullopt;
  found.v = last.inputs[1];
  for (int operand : {found.q, found.k, found.v}) {
    bool fits = operand != found.weights && ensure_available(lowering, operand) &&
                lowering.view(operand).dims.size() == rank;
    if (!fits) return std::nullopt;
  }
  const View& q = lowering.view(found.q);
  const View& k = lowering.view(found.k);
  if (!can_be_real(q) || !can_be_real(k) || !can_be_real(lowering.view(found.v)))
    return std::nullopt;
  found.epilogue = find_epilogue(lowering, found.context, static_cast<int>(rank) - 1);
  if (found.epilogue.nodes.size() > (found.epilogue.quant ? 1 : 0)) return std::nullopt;
  return found;
}

View make_context(Lowering& lowering, const Attention& attention) {
  const Epilogue& epilogue = attention.epilogue;
  const ElementType type =
      epilogue.quant ? epilogue.quant_type : lowering.stored_type(epilogue.result);
  return lowering.make(epilogue.result, type, strides_for_reader(lowering, epilogue.result));
}

void mark_attention(Lowering& lowering, const Attention& attention) {
  mark_absorbed(lowering, attention.epilogue);
  for (int node : attention.front.nodes)
    lowering.mark_done(node);
  lowering.mark_done(attention.front.softmax);
  lowering.mark_done(attention.context);
}

namespace {

class AttentionBuilder {
 public:
  AttentionBuilder(Lowering& lowering, const Attention& attention)
      : lowering_(lowering), attention_(attention) {}

  // One part when all of the scores fit in cache.
  Cut cut() const {
    return choose_cut({.type = lowering_.stored_type(attention_.scores),
                       .dims = lowering_.graph().values[attention_.scores].dims},
                      lowering_.options().threads);
  }

  void build(const Cut& cut) {
    const Graph& graph = lowering_.graph();
    const Dims& dims = graph.values[attention_.scores].dims;
    const View scores =
        scratch_part(lowering_, lowering_.stored_type(attention_.scores), dims, cut);
    const size_t rank = dims.size();
    const bool is_real_product =
        !may_be_int8(lowering_.view(attention_.q), lowering_.view(attention_.k));
    const View q =
        is_real_product ? real_matrix(lowering_, attention_.q) : lowering_.view(attention_.q);
    const View k =
        is_real_product ? real_matrix(lowering_, attention_.k) : as_signed(lowering_, attention_.k);
    const View v = real_matrix(lowering_, attention_.v);
    const View context = make_context(lowering_, attention_);
    for (int64_t part = 0; part < cut.n_parts; ++part) {
      auto of = [&](const View& whole) { return part_of(whole, cut, rank, part); };
      multiply(graph.values[attention_.scores].producer, of(q), of(k), scores);
      normalize(scores, cut, part);
      store(scores, of(v), of(context));
    }
    mark_attention(lowering_, attention_);
  }

 private:
  // oneDNN makes floating-point numbers of floating-point numbers, so quantized values are made of
  // a part that is still in cache.
  void store(const View& weights, const View& v, View context) {
    if (!attention_.epilogue.quant) return multiply(attention_.context, weights, v, context);
    if (real_.buffer == kNone) {
      real_ = {.type = lowering_.real_type(),
               .dims = context.dims,
               .strides = dense_strides_like(context.dims, context.strides)};
      real_.buffer = lowering_.scratch(real_.bytes());
    }
    multiply(attention_.context, weights, v, real_);
    context.quant = *attention_.epilogue.quant;
    const Node& quantize = lowering_.graph().nodes[attention_.epilogue.nodes[0]];
    lowering_.add_copy(quantize.name, real_, context);
  }

  void multiply(int node, const View& a, const View& b, const View& c) {
    multiply_part(lowering_, lowering_.graph().nodes[node].name, a, b, c);
  }

  void normalize(const View& scores, const Cut& cut, int64_t part) {
    const SoftmaxFront& front = attention_.front;
    const Node& softmax = lowering_.graph().nodes[front.softmax];
    if (front.mask == kNone)
      return lowering_.add_step(softmax_step(softmax, front, scores, scores, nullptr));
    const View mask = part_of(lowering_.view(front.mask), cut, scores.dims.size(), part);
    lowering_.add_step(softmax_step(softmax, front, scores, scores, &mask));
  }

  Lowering& lowering_;
  const Attention& attention_;
  View real_ = {};  // a part of the context, where the whole is quantized values
};

Offer offer_parts(const AttentionSite& site) {
  if (!holds_floats(site.lowering.view(site.attention->v))) return refused(kQuantizedValues);
  AttentionBuilder builder(site.lowering, *site.attention);
  const Cut cut = builder.cut();
  if (cut.n_parts == 1) return refused("all scores fit in cache");
  return accepted([builder, cut]() mutable { builder.build(cut); });
}

Offer offer_product(const AttentionSite& site) {
  return accepted([&site] { lower_product(site.lowering, site.scores); });
}

constexpr Implementation<AttentionSite> kScores[] = {
    {"amx attention", offer_tile_attention},
    {"attention", offer_vector_attention},
    {"attention in parts", offer_parts},
    {"product", offer_product},
};

}  // namespace

Names scores_names() {
  return names_of(kScores);
}

void lower_scores(Lowering& lowering, const Product& scores) {
  const AttentionSite site{lowering, scores, find_attention(lowering, scores.node)};
  if (!site.attention) return lower_product(lowering, scores);
  choose<AttentionSite>(lowering, site, kScores);
}

}  // namespace tenon::onednn
