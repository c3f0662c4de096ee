// SPDX-License-Identifier: Apache-2.0
// attention: heads are channels, in 3 axes [batch, length, heads * size] or 4 [batch, heads,
// length, size]. A head of keys and values goes with all heads of queries that share it. Sizes of
// heads stay, as the default scale follows from them.
#include "../rules.hpp"

namespace tenon::pruner {
namespace {

// Where the heads of an operand lie: entry i of the axis belongs to head i / size.
struct Heads {
  Value value;
  size_t axis = 0;
  int64_t count = 0, size = 1;
};

std::optional<Heads> heads_of(Value value, int64_t stated) {
  Type type = value.type();
  if (type.rank() == 4 && type.dims[1] > 0) return Heads{value, 1, type.dims[1], 1};
  if (type.rank() != 3 || stated < 1 || type.dims[2] < 0) return std::nullopt;
  return Heads{value, 2, stated, type.dims[2] / stated};
}

class Coupling {
 public:
  Coupling(Node node, Couplings& couplings) : node_(node), stated_(node), couplings_(couplings) {}

  Refusal couple() {
    auto q = heads_of(stated_.input("q"), stated_.integer("q_heads", 0));
    auto k = heads_of(stated_.input("k"), stated_.integer("kv_heads", 0));
    auto v = heads_of(stated_.input("v"), stated_.integer("kv_heads", 0));
    auto y = heads_of(node_.output(0), stated_.integer("q_heads", 0));
    bool known = q && k && v && y && q->count % k->count == 0 && k->count == v->count;
    if (!known) return "how many heads it has is not known";
    shared_ = q->count / k->count;
    heads_ = couplings_.local(k->count);
    for (const auto& [heads, shared] : {std::pair{*q, shared_}, std::pair{*k, int64_t{1}},
                                        std::pair{*v, int64_t{1}}, std::pair{*y, shared_}})
      join(heads, shared);
    for (std::string_view key : {"past_key", "past_value"})
      if (Value past = stated_.input(key)) join({past, 1, k->count, 1}, 1);
    for (uint64_t present : {uint64_t{1}, uint64_t{2}})
      if (present < node_.n_outputs() && node_.output(present))
        join({node_.output(present), 1, k->count, 1}, 1);
    if (node_.n_outputs() > 3 && node_.output(3)) join({node_.output(3), 1, q->count, 1}, shared_);
    join_mask(q->count);
    return std::nullopt;
  }

 private:
  void join(const Heads& heads, int64_t shared) {
    for (size_t axis = 0; axis < couplings_.rank(heads.value); ++axis) {
      int slot = couplings_.slot(heads.value, axis);
      if (axis != heads.axis) {
        couplings_.protect(slot, cat(node_text(node_), " mixes its entries"));
      } else if (slot == kNoSlot || couplings_.size(slot) != heads.count * heads.size) {
        couplings_.join(slot, kNoSlot, node_);
        couplings_.protect(heads_, cat(node_text(node_), " meets heads of another number"));
      } else {
        for (int64_t i = 0; i < couplings_.size(slot); ++i)
          couplings_.join(slot, i, heads_, i / heads.size / shared);
      }
    }
  }
  // [.., heads or 1, queries, keys], of which whole heads may go.
  void join_mask(int64_t n_heads) {
    Value mask = stated_.input("mask");
    if (!mask) return;
    const size_t rank = couplings_.rank(mask);
    const int slot = rank < 3 ? kNoSlot : couplings_.slot(mask, rank - 3);
    if (rank < 3 || (slot != kNoSlot && couplings_.size(slot) == 1)) {
      couplings_.protect_all(mask, cat(node_text(node_), " mixes its entries"));
      return;
    }
    uint64_t at = 0;
    while (!(node_.input(at) == mask))
      ++at;
    join({mask, rank - 3, n_heads, 1}, shared_);
    couplings_.mark(slot, Kind::kVector, node_, at);
  }

  Node node_;
  Stated stated_;
  Couplings& couplings_;
  int heads_ = kNoSlot;
  int64_t shared_ = 1;
};

Refusal couple_attention(Node node, Couplings& couplings) {
  return Coupling(node, couplings).couple();
}

Status rewrite_attention(EditView edit, Node node, const Kept& kept) {
  Stated stated(node);
  for (auto [key, operand] : {std::pair{"q_heads", "q"}, std::pair{"kv_heads", "k"}}) {
    if (!stated.has(key)) continue;
    auto heads = heads_of(stated.input(operand), stated.integer(key, 0));
    if (heads && kept(heads->value, heads->axis))
      TN_CHECK(stated.set(edit, key, size_after(heads->value, heads->axis, kept) / heads->size));
  }
  return {};
}

constexpr Rule kRules[] = {{TN_COUPLING_ATTENTION, couple_attention, rewrite_attention}};

}  // namespace

std::span<const Rule> attention_rules() {
  return kRules;
}

}  // namespace tenon::pruner
