// SPDX-License-Identifier: Apache-2.0
// Where the row's axes say that the operator treats entries along its first axis alone: a run or a
// batch at the front takes the new axis in; a single axis at the front is merged with it for the
// time of the node, which is how a convolution of many batches is one convolution.
#include <algorithm>
#include <set>

#include "batching.hpp"

namespace tenon::autodiff {
namespace {

class Front {
 public:
  Front(const BatchContext& c, Node node, const tn_axes& axes) : axes_(axes) {
    for (uint32_t i = 0; i < axes.n_inputs && ok_; ++i) {
      Value input = node.input(i);
      if (!input) continue;
      if (c.batched.count(input.id)) must_lead(axes.operands[i]);
      if (short_of_axes(axes.operands[i], input)) ok_ = false;
      if (!c.batched.count(input.id)) unbatched_.emplace_back(i, &axes.operands[i]);
    }
    for (uint32_t i = 0; i < axes.n_outputs && ok_; ++i)
      if (node.output(i)) must_lead(axes.operands[axes.n_inputs + i]);
    if (node.n_inputs() > axes.n_inputs) ok_ = false;
    if (!ok_) return;
    kind_ = axes.labels[label_].kind;
    // A run or an axis of a partner without the new axis is repeated, where it leads there too.
    for (auto [i, operand] : unbatched_) {
      if (kind_ == TN_AXES_BATCH || !has_label(*operand)) continue;
      must_lead(*operand);
      repeated_.insert(i);
    }
  }
  bool ok() const { return ok_; }
  uint32_t kind() const { return kind_; }
  const tn_axes_label& label() const { return axes_.labels[label_]; }
  // Whether input i stands for all examples, and has to stand there for each.
  bool is_repeated(uint32_t i) const { return repeated_.count(i) > 0; }
  // How many axes the batch of an operand has, given its rank: none where it has no batch.
  size_t batch_length(uint32_t operand, size_t rank) const {
    if (!has_label(axes_.operands[operand])) return 0;
    size_t others = axes_.operands[operand].n_dims - 1;
    return rank >= others ? rank - others : 0;
  }

 private:
  // A vector where the axes say a matrix (MatMul) is a form of its own.
  bool short_of_axes(const tn_axes_operand& operand, Value input) const {
    uint32_t least = 0;
    for (uint32_t t = 0, seen = 0; t < operand.n_terms; ++t) {
      const tn_axes_term& term = axes_.terms[operand.first_term + t];
      bool open = (term.flags & (TN_AXES_TERM_RUN | TN_AXES_TERM_BATCH)) != 0;
      if (!open && (t == 0 || term.dim + 1 != seen)) ++least;
      seen = term.dim + 1;
    }
    Type type = input.type();
    return !type.ranked || type.rank() < least;
  }
  bool has_label(const tn_axes_operand& operand) const {
    for (uint32_t t = 0; t < operand.n_terms; ++t)
      if (axes_.terms[operand.first_term + t].label == label_) return true;
    return false;
  }
  void must_lead(const tn_axes_operand& operand) {
    constexpr uint32_t kBad = TN_AXES_TERM_REDUCED | TN_AXES_TERM_PRIMED | TN_AXES_TERM_GROUPED;
    if (operand.n_terms == 0 || (operand.flags & TN_AXES_OPERAND_REPEATED)) {
      ok_ = false;
      return;
    }
    const tn_axes_term& first = axes_.terms[operand.first_term];
    bool fits = first.label != TN_AXES_NO_LABEL && !(first.flags & kBad);
    ok_ = ok_ && fits && (label_ == TN_AXES_NO_LABEL || label_ == first.label);
    label_ = first.label;
    // The same label further on must not be mixed along either.
    for (uint32_t t = 0; t < axes_.n_terms; ++t)
      if (axes_.terms[t].label == label_ && (axes_.terms[t].flags & kBad)) ok_ = false;
  }

  const tn_axes& axes_;
  std::vector<std::pair<uint32_t, const tn_axes_operand*>> unbatched_;
  std::set<uint32_t> repeated_;
  uint32_t label_ = TN_AXES_NO_LABEL;
  uint32_t kind_ = TN_AXES_SINGLE;
  bool ok_ = true;
};

Status extend_run(BatchContext& c, Node node, const tn_axes& axes, const Front& front) {
  Builder b(c.edit);
  size_t longest = 0;
  for (uint32_t i = 0; i < node.n_inputs(); ++i)
    if (Value input = node.input(i); input && front.kind() == TN_AXES_BATCH)
      longest = std::max(longest, front.batch_length(i, b.ranked(input, node.type()).rank()));
  TN_CHECK(b.status());
  std::vector<Value> inputs;
  for (uint32_t i = 0; i < node.n_inputs(); ++i) {
    Value input = node.input(i);
    Value form = front.is_repeated(i) ? with_axis(b, c, input) : form_of(c, input);
    if (input && !(form == input) && front.kind() == TN_AXES_BATCH)
      form = lifted(b, form, longest - front.batch_length(i, input.type().rank()));
    inputs.push_back(form);
  }
  std::vector<Attr> changed;
  std::string name(axes.text + front.label().bind_offset, front.label().bind_len);
  if (!name.empty() && node.attr_int(name) >= 0)
    changed.emplace_back(name, node.attr_int(name) + 1);
  Node made = again(b, node, inputs, changed);
  TN_CHECK(b.status());
  for (uint64_t i = 0; i < node.n_outputs(); ++i)
    if (node.output(i)) c.batched[node.output(i).id] = made.output(i);
  return {};
}

// [size, n, ...] as [size*n, ...] and back.
Status merge(BatchContext& c, Node node, const Front& front) {
  Builder b(c.edit);
  std::vector<Value> inputs;
  Value batched;
  for (uint32_t i = 0; i < node.n_inputs(); ++i) {
    Value input = node.input(i);
    Value form = front.is_repeated(i) ? with_axis(b, c, input) : form_of(c, input);
    if (input && !(form == input)) {
      batched = form;
      form = for_examples(b, c, form, b.fixed(input, node.type()).dims, batched);
    }
    inputs.push_back(form);
  }
  Node made = again(b, node, inputs);
  for (uint64_t i = 0; i < node.n_outputs(); ++i) {
    if (!node.output(i)) continue;
    std::vector<int64_t> dims = b.fixed(node.output(i), node.type()).dims;
    dims.insert(dims.begin(), 1);
    Value split = for_examples(b, c, made.output(i), dims, batched);
    TN_CHECK(b.status());
    c.batched[node.output(i).id] = split;
  }
  return {};
}

}  // namespace

Result<bool> batch_by_axes(BatchContext& c, Node node, const tn_axes& axes) {
  Front front(c, node, axes);
  if (!front.ok()) return false;
  if (front.kind() == TN_AXES_SINGLE) {
    TN_CHECK(merge(c, node, front));
  } else {
    TN_CHECK(extend_run(c, node, axes, front));
  }
  return true;
}

}  // namespace tenon::autodiff
