// SPDX-License-Identifier: Apache-2.0
// Signatures with one node's shapes: how long each label is, and so the shapes of the outputs.
#include <algorithm>
#include <utility>

#include "languages/axes.hpp"

namespace tenon::host {
namespace {

std::string size_text(const AxesDim& dim) {
  if (dim.is_known()) return std::to_string(dim.size);
  return dim.symbol.empty() ? "?" : dim.symbol;
}

// Keeps what is known best; false: both are known and differ. Two symbols may still be equal.
bool unify(AxesDim& have, const AxesDim& dim) {
  if (!have.is_known() && (dim.is_known() || have.symbol.empty())) have = dim;
  return !dim.is_known() || have.size == dim.size;
}

}  // namespace

std::optional<AxesDim> broadcast(const AxesDim& a, const AxesDim& b) {
  if (a.size == 1) return b;
  if (b.size == 1) return a;
  if (a.is_known() && b.is_known()) return a == b ? std::optional(a) : std::nullopt;
  if (a.is_known()) return a;  // the other is 1 or the same
  if (b.is_known()) return b;
  return a == b ? a : AxesDim();
}

class AxesSizeSolver {
 public:
  AxesSizeSolver(const Axes& axes, const AxesLayout& layout, const AxesShapes& shapes)
      : axes_(axes), layout_(layout), shapes_(shapes), sizes_(axes.labels_.size()) {}

  Parsed<AxesInferred> infer() {
    for (size_t l = 0; l < sizes_.size(); ++l)
      sizes_[l].resize(layout_.run_lengths[l]);
    for (const auto& [label, value] : layout_.bound_sizes)
      sizes_[label][0] = {{value, {}}, "attribute", true};
    if (!read() || !factor()) return error_;
    return write();
  }

 private:
  struct Size {
    AxesDim dim;
    std::string origin;  // where it was seen, for messages
    bool seen = false;
  };

  bool fail(uint32_t column, std::string expected, std::string got) {
    error_ = {column, std::move(expected), std::move(got)};
    return false;
  }

  static std::string where(size_t operand, size_t axis) {
    return "input " + std::to_string(operand) + " axis " + std::to_string(axis);
  }
  const AxesDim& dim_at(size_t operand, size_t axis) const {
    const std::optional<AxesShape>& shape = shapes_[operand];
    return shape ? (*shape)[axis] : nothing_;
  }
  bool is_grouped(uint32_t term) const { return axes_.terms_[term].flags & TN_AXES_TERM_GROUPED; }

  // Ungrouped axes of the inputs.
  bool read() {
    for (const AxesPlace& place : layout_.all) {
      if (place.operand >= shapes_.size() || is_grouped(place.term)) continue;
      const tn_axes_term& term = axes_.terms_[place.term];
      for (uint32_t i = 0; i < place.count; ++i) {
        const AxesDim& dim = dim_at(place.operand, place.axis + i);
        const std::string at = where(place.operand, place.axis + i);
        if (term.label == TN_AXES_NO_LABEL) {
          if (dim.is_known() && dim.size != static_cast<int64_t>(term.size))
            return fail(term.column, "size " + std::to_string(term.size) + " of " + at,
                        size_text(dim));
          continue;
        }
        if (!merge(term, sizes_[term.label][place.first + i], dim, at)) return false;
      }
    }
    return true;
  }

  bool merge(const tn_axes_term& term, Size& size, const AxesDim& dim, const std::string& at) {
    if (!size.seen) {
      size = {dim, at, true};
      return true;
    }
    const AxesDim before = size.dim;
    bool fits = true;
    if (term.flags & TN_AXES_TERM_BATCH) {
      const auto both = broadcast(size.dim, dim);
      fits = both.has_value();
      if (both) size.dim = *both;
    } else {
      fits = unify(size.dim, dim);
    }
    return fits ||
           fail(term.column,
                axes_.name(term.label) + " = " + size_text(before) + " (" + size.origin + ")",
                size_text(dim) + " (" + at + ")");
  }

  struct Group {
    std::vector<uint32_t> terms;
    std::vector<uint32_t> key;  // what equal groups share, wherever they stand
  };
  Group group_at(size_t place) const {
    Group group;
    const AxesPlace& first = layout_.all[place];
    for (; place < layout_.all.size() && layout_.all[place].operand == first.operand &&
           axes_.terms_[layout_.all[place].term].dim == axes_.terms_[first.term].dim;
         ++place) {
      const tn_axes_term& term = axes_.terms_[layout_.all[place].term];
      group.terms.push_back(layout_.all[place].term);
      group.key.push_back(term.label);
      group.key.push_back(static_cast<uint32_t>(term.size));
    }
    return group;
  }
  bool starts_group(size_t place) const {
    if (!is_grouped(layout_.all[place].term)) return false;
    const AxesPlace& at = layout_.all[place];
    return place == 0 || layout_.all[place - 1].operand != at.operand ||
           axes_.terms_[layout_.all[place - 1].term].dim != axes_.terms_[at.term].dim;
  }

  // Grouped axes: a total and all factors but one give the last one; repeated until nothing moves.
  bool factor() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t p = 0; p < layout_.all.size(); ++p) {
        const AxesPlace& place = layout_.all[p];
        if (place.operand >= shapes_.size() || !starts_group(p)) continue;
        const Group group = group_at(p);
        Size& total = totals_[group.key];
        const AxesDim& dim = dim_at(place.operand, place.axis);
        const std::string at = where(place.operand, place.axis);
        if (!total.seen) total = {dim, at, true};
        const AxesDim before = total.dim;
        if (!unify(total.dim, dim))
          return fail(axes_.terms_[place.term].column,
                      size_text(before) + " (" + total.origin + ")",
                      size_text(dim) + " (" + at + ")");
        if (!divide(group, total, changed)) return false;
      }
    }
    return true;
  }

  // The product of the known factors; open: the one label still unknown, if exactly one.
  struct Product {
    int64_t value = 1;
    uint32_t n_open = 0;
    uint32_t open = 0;
    bool overflow = false;
  };
  Product product_of(const Group& group) const {
    Product result;
    for (const uint32_t at : group.terms) {
      const tn_axes_term& term = axes_.terms_[at];
      const bool literal = term.label == TN_AXES_NO_LABEL;
      const int64_t size =
          literal ? static_cast<int64_t>(term.size) : sizes_[term.label][0].dim.size;
      if (size == TN_DIM_UNKNOWN)
        ++result.n_open, result.open = term.label;
      else
        result.overflow |= __builtin_mul_overflow(result.value, size, &result.value);
    }
    return result;
  }

  bool divide(const Group& group, const Size& total, bool& changed) {
    const Product product = product_of(group);
    const uint32_t column = axes_.terms_[group.terms[0]].column;
    if (product.overflow) return fail(column, "a product below 2^63", "an overflow");
    const AxesDim& dim = total.dim;
    if (product.n_open == 0 && (!dim.is_known() || dim.size == product.value)) return true;
    if (product.n_open == 0)
      return fail(column, "product " + std::to_string(product.value),
                  size_text(dim) + " (" + total.origin + ")");
    if (!dim.is_known() && (product.n_open > 1 || product.value != 1)) return true;
    const bool whole = product.value == 0 ? dim.size == 0 : dim.size % product.value == 0;
    if (dim.is_known() && !whole)
      return fail(column, "a multiple of " + std::to_string(product.value),
                  size_text(dim) + " (" + total.origin + ")");
    if (product.n_open > 1 || product.value == 0) return true;
    Size& size = sizes_[product.open][0];
    AxesDim share = dim;
    if (dim.is_known()) share.size = dim.size / product.value;
    if (!size.seen || (share.is_known() && !size.dim.is_known()) || size.dim.symbol.empty()) {
      changed |= !(size.seen && size.dim == share);
      size = {share, total.origin, true};
    }
    return true;
  }

  Parsed<AxesInferred> write() {
    AxesInferred result{{}, true};
    for (size_t o = shapes_.size(); o < layout_.ranks.size(); ++o)
      result.outputs.emplace_back(layout_.ranks[o]);
    for (size_t p = 0; p < layout_.all.size(); ++p) {
      const AxesPlace& place = layout_.all[p];
      if (place.operand < shapes_.size()) continue;
      AxesShape& shape = result.outputs[place.operand - shapes_.size()];
      const tn_axes_term& term = axes_.terms_[place.term];
      if (is_grouped(place.term)) {
        if (!starts_group(p)) continue;
        const Group group = group_at(p);
        const Product product = product_of(group);
        if (product.overflow) return ParseError{term.column, "a product below 2^63", "an overflow"};
        const auto total = totals_.find(group.key);
        if (product.n_open == 0)
          shape[place.axis] = {product.value, {}};
        else if (total != totals_.end())
          shape[place.axis] = total->second.dim;
        else
          result.complete = false;
        continue;
      }
      for (uint32_t i = 0; i < place.count; ++i) {
        AxesDim& dim = shape[place.axis + i];
        if (term.label == TN_AXES_NO_LABEL)
          dim = {static_cast<int64_t>(term.size), {}};
        else if (term.flags & TN_AXES_TERM_PRIMED || !sizes_[term.label][i].seen)
          result.complete = false;
        else
          dim = sizes_[term.label][i].dim;
      }
    }
    return result;
  }

  const Axes& axes_;
  const AxesLayout& layout_;
  const AxesShapes& shapes_;
  std::vector<std::vector<Size>> sizes_;          // by label, by axis of the run
  std::map<std::vector<uint32_t>, Size> totals_;  // of groups
  const AxesDim nothing_;                         // of an absent input
  ParseError error_;                              // column 0: none yet
};

Parsed<AxesInferred> Axes::infer(const AxesShapes& inputs, const AxesAttributes& attributes) const {
  AxesRanks ranks;
  for (const auto& shape : inputs)
    ranks.push_back(shape ? std::optional(static_cast<uint32_t>(shape->size())) : std::nullopt);
  const Parsed<AxesLayout> laid = layout(ranks, attributes);
  if (!laid) return laid.error();
  return AxesSizeSolver(*this, *laid, inputs).infer();
}

std::optional<ParseError> Axes::disagreement(const AxesShapes& inputs,
                                             const AxesShapes& outputs,
                                             const AxesAttributes& attributes) const {
  const Parsed<AxesInferred> inferred = infer(inputs, attributes);
  if (!inferred) return inferred.error();
  if (outputs.size() > inferred->outputs.size())
    return ParseError{1, std::to_string(inferred->outputs.size()) + " outputs at most",
                      std::to_string(outputs.size())};
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::optional<AxesShape>& output = outputs[o];
    if (!output) continue;
    const AxesShape& said = inferred->outputs[o];
    const std::string at = " of output " + std::to_string(o);
    if (said.size() != output->size())
      return ParseError{1, "rank " + std::to_string(said.size()) + at,
                        std::to_string(output->size())};
    for (size_t i = 0; i < said.size(); ++i) {
      AxesDim both = said[i];
      if (!unify(both, (*output)[i]))
        return ParseError{1, "size " + size_text(said[i]) + at + " axis " + std::to_string(i),
                          size_text((*output)[i])};
    }
  }
  return {};
}

}  // namespace tenon::host
