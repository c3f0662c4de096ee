// SPDX-License-Identifier: Apache-2.0
// Signatures with one node's ranks: which axis carries which label.
#include <algorithm>
#include <utility>

#include "languages/axes.hpp"

namespace tenon::host {
std::vector<AxesPlace> AxesLayout::places(uint32_t label, const tn_axes& axes) const {
  std::vector<AxesPlace> found;
  for (const AxesPlace& place : all)
    if (axes.terms[place.term].label == label) found.push_back(place);
  return found;
}

class AxesRankSolver {
 public:
  AxesRankSolver(const Axes& axes, const AxesAttributes& attributes)
      : axes_(axes), attributes_(attributes), lengths_(axes.labels_.size(), kOpen) {}

  Parsed<AxesLayout> layout(const AxesRanks& ranks) {
    if (!count_inputs(ranks.size()) || !bind(ranks)) return error_;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < ranks.size(); ++i)
        if (ranks[i] && !solve(i, ranks[i].value_or(0), changed)) return error_;
    }
    for (size_t i = 0; i < ranks.size() + axes_.operands_.size() - axes_.n_inputs_; ++i)
      if (!place(i, ranks)) return error_;
    return std::move(layout_);
  }

 private:
  static constexpr int64_t kOpen = -1;

  bool fail(uint32_t column, std::string expected, std::string got) {
    error_ = {column, std::move(expected), std::move(got)};
    return false;
  }

  size_t row(size_t operand, size_t n_inputs) const {
    if (operand >= n_inputs) return operand - n_inputs + axes_.n_inputs_;
    return axes_.is_pointwise() ? 0 : operand;
  }

  bool count_inputs(size_t count) {
    size_t least = axes_.n_inputs_;
    while (least > 0 && axes_.operands_[least - 1].flags & TN_AXES_OPERAND_OPTIONAL)
      --least;
    const bool enough = count >= std::max<size_t>(least, axes_.is_pointwise() ? 1 : 0);
    if (enough && (axes_.is_pointwise() || count <= axes_.n_inputs_)) return true;
    return fail(1, std::to_string(least) + " to " + std::to_string(axes_.n_inputs_) + " inputs",
                std::to_string(count));
  }

  bool bind(const AxesRanks& ranks) {
    for (uint32_t l = 0; l < axes_.labels_.size(); ++l) {
      const tn_axes_label& label = axes_.labels_[l];
      if (label.kind == TN_AXES_SINGLE) lengths_[l] = 1;
      if (label.bind_len == 0) continue;
      const std::string attribute = axes_.text_.substr(label.bind_offset, label.bind_len);
      std::optional<int64_t> value = attributes_ ? attributes_(attribute) : std::nullopt;
      if (!value) return fail(label.bind_offset + 1, "attribute " + attribute, "none");
      const bool is_run = label.kind == TN_AXES_RUN;
      if (is_run && *value < 0 && !ranks.empty() && ranks[0]) *value += ranks[0].value_or(0);
      if (*value < (is_run ? 0 : 1) || *value > (is_run ? int64_t{UINT16_MAX} : INT64_MAX))
        return fail(label.bind_offset + 1,
                    is_run ? "an axis within the rank" : "a size of at least 1",
                    std::to_string(*value));
      (is_run ? lengths_[l] : layout_.bound_sizes[l]) = *value;
    }
    return true;
  }

  // One input's equation: its rank is the sum of its items.
  bool solve(size_t input, uint32_t rank, bool& changed) {
    const tn_axes_operand& operand = axes_.operands_[row(input, SIZE_MAX)];
    int64_t rest = rank;
    const tn_axes_term* open = nullptr;
    const tn_axes_term* batch = nullptr;
    uint32_t n_open = 0;
    for_items(operand, [&](const tn_axes_term& term) {
      if (term.flags & TN_AXES_TERM_BATCH)
        batch = &term;
      else if (length(term) == kOpen)
        open = &term, ++n_open;
      else
        rest -= length(term);
    });
    if (rest < 0 || (rest > 0 && !open && !batch))
      return wrong_rank(operand, input, rank, rest, open || batch);
    if (n_open == 1 && !batch) lengths_[open->label] = rest, changed = true;
    if (n_open == 0 && batch && rest > lengths_[batch->label])
      lengths_[batch->label] = rest, changed = true;
    return true;
  }
  bool wrong_rank(
      const tn_axes_operand& operand, size_t input, uint32_t rank, int64_t rest, bool is_least) {
    const uint32_t column = operand.n_terms ? axes_.terms_[operand.first_term].column : 1;
    const std::string least = is_least ? "at least " : "";
    return fail(
        column,
        "rank " + least + std::to_string(rank - rest) + " of input " + std::to_string(input),
        std::to_string(rank));
  }

  template <class Seen>
  void for_items(const tn_axes_operand& operand, Seen seen) const {
    for (uint32_t i = 0, dim = UINT32_MAX; i < operand.n_terms; ++i) {
      const tn_axes_term& term = axes_.terms_[operand.first_term + i];
      if (std::exchange(dim, term.dim) != term.dim) seen(term);
    }
  }
  int64_t length(const tn_axes_term& term) const {
    return term.label == TN_AXES_NO_LABEL ? 1 : lengths_[term.label];
  }

  bool place(size_t operand, const AxesRanks& ranks) {
    if (layout_.run_lengths.empty())
      for (int64_t l : lengths_)
        layout_.run_lengths.push_back(static_cast<uint32_t>(std::max<int64_t>(l, 0)));
    const bool is_input = operand < ranks.size();
    layout_.ranks.push_back(0);
    if (is_input && !ranks[operand]) return true;
    const tn_axes_operand& at = axes_.operands_[row(operand, ranks.size())];
    int64_t others = 0;
    for_items(at, [&](const tn_axes_term& term) {
      if (!(term.flags & TN_AXES_TERM_BATCH)) others += std::max<int64_t>(length(term), 0);
    });
    uint32_t axis = 0;
    for (uint32_t i = 0; i < at.n_terms; ++i) {
      const uint32_t index = at.first_term + i;
      const tn_axes_term& term = axes_.terms_[index];
      int64_t count = length(term);
      if (count == kOpen) {
        if (!(term.flags & TN_AXES_TERM_BATCH))
          return fail(term.column,
                      "an input that fixes the length of run '" + axes_.name(term.label) + "'",
                      "it absent");
        count = 0;
      }
      const int64_t full = count;
      if (is_input && term.flags & TN_AXES_TERM_BATCH) count = ranks[operand].value_or(0) - others;
      layout_.all.push_back({static_cast<uint32_t>(operand), axis, static_cast<uint32_t>(count),
                             index, static_cast<uint32_t>(full - count)});
      const bool last = i + 1 == at.n_terms || axes_.terms_[index + 1].dim != term.dim;
      if (last) axis += static_cast<uint32_t>(count);
    }
    layout_.ranks.back() = axis;
    return true;
  }

  const Axes& axes_;
  const AxesAttributes& attributes_;
  std::vector<int64_t> lengths_;  // by label
  AxesLayout layout_;
  ParseError error_;  // column 0: none yet
};

Parsed<AxesLayout> Axes::layout(const AxesRanks& inputs, const AxesAttributes& attributes) const {
  return AxesRankSolver(*this, attributes).layout(inputs);
}

}  // namespace tenon::host
