// SPDX-License-Identifier: Apache-2.0
// The parser of abi/axes.md, its canonical text, and the checks that need no ranks.
#include "languages/axes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "languages/cursor.hpp"

namespace tenon::host {
namespace {

constexpr size_t kMostText = 4096;
constexpr const char* kKinds[] = {"one axis", "a run (..)", "a batch (*)"};  // by TN_AXES_*
constexpr uint32_t kSizeMarks =
    TN_AXES_TERM_REDUCED | TN_AXES_TERM_PRIMED | TN_AXES_TERM_RUN | TN_AXES_TERM_BATCH;

}  // namespace

class AxesParser {
 public:
  explicit AxesParser(std::string_view text) : cursor_(text) {}

  Parsed<Axes> parse() {
    if (cursor_.size() > kMostText) fail("at most 4096 bytes", std::to_string(cursor_.size()));
    const bool ok =
        error_.column == 0 && (cursor_.starts_with("*") ? pointwise() : signature()) && check();
    if (!ok) return error_;
    print();
    return std::move(axes_);
  }

 private:
  bool fail_at(uint32_t column, std::string expected, std::string got) {
    if (error_.column == 0) error_ = {column, std::move(expected), std::move(got)};
    return false;
  }
  bool fail(std::string expected, std::string got) {
    return fail_at(cursor_.column(), std::move(expected), std::move(got));
  }
  bool fail(std::string expected) { return fail(std::move(expected), cursor_.describe()); }

  bool pointwise() {
    cursor_.take("*");
    names_ = {""};
    axes_.labels_ = {{0, 0, TN_AXES_BATCH, 0, 0, 0}};
    axes_.terms_ = {{0, TN_AXES_TERM_BATCH, 0, 1, 0}, {0, TN_AXES_TERM_BATCH, 0, 1, 0}};
    axes_.operands_ = {{0, 1, 1, TN_AXES_OPERAND_REPEATED}, {1, 1, 1, 0}};
    axes_.n_inputs_ = 1;
    binds_ = {""};
    return cursor_.at_end() || fail("the end after '*'");
  }

  bool signature() {
    do
      if (!operand()) return false;
    while (cursor_.take(","));
    if (!cursor_.take("->")) return fail("',' or '->'");
    axes_.n_inputs_ = static_cast<uint32_t>(axes_.operands_.size());
    do
      if (!operand()) return false;
    while (cursor_.take(","));
    binds_.resize(names_.size());
    if (cursor_.take(";")) do
        if (!bind()) return false;
      while (cursor_.take(","));
    return cursor_.at_end() || fail(axes_.terms_.empty() ? "'->'" : "',', ';' or the end");
  }

  bool operand() {
    tn_axes_operand made{static_cast<uint32_t>(axes_.terms_.size()), 0, 0, 0};
    if (cursor_.take("[")) {
      if (!cursor_.take("]")) return fail("']'");
    } else {
      while (starts_item()) {
        if (!item(made.n_dims)) return false;
        ++made.n_dims;
      }
      if (made.n_dims == 0) return fail("a label, a size, '(' or []");
    }
    made.n_terms = static_cast<uint32_t>(axes_.terms_.size()) - made.first_term;
    if (cursor_.take("?")) made.flags |= TN_AXES_OPERAND_OPTIONAL;
    axes_.operands_.push_back(made);
    return true;
  }

  bool starts_item() {
    return !cursor_.peek_name().empty() || cursor_.starts_with_digit() || cursor_.starts_with("(");
  }

  bool item(uint32_t dim) {
    if (!cursor_.take("(")) return term(dim, 0);
    uint32_t factors = 0;
    for (; starts_item() && !cursor_.starts_with("("); ++factors)
      if (!term(dim, TN_AXES_TERM_GROUPED)) return false;
    if (factors < 2) return fail("at least two factors in ( )");
    return cursor_.take(")") || fail("a label, a size or ')'");
  }

  bool term(uint32_t dim, uint32_t flags) {
    tn_axes_term made{TN_AXES_NO_LABEL, flags, dim, cursor_.column(), 0};
    if (cursor_.starts_with_digit()) {
      const std::string_view digits = cursor_.take_digits();
      uint32_t size = 0;
      const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), size).ec;
      if (error != std::errc() || size == 0)
        return fail_at(made.column, "a size from 1 to 4294967295", "'" + std::string(digits) + "'");
      made.size = size;
    } else {
      const std::string name(cursor_.take_name());
      if (cursor_.take_adjacent("'")) made.flags |= TN_AXES_TERM_PRIMED;
      if (cursor_.take_adjacent("~")) made.flags |= TN_AXES_TERM_REDUCED;
      if (cursor_.take_adjacent(".."))
        made.flags |= TN_AXES_TERM_RUN;
      else if (cursor_.take_adjacent("*"))
        made.flags |= TN_AXES_TERM_BATCH;
      if (flags && made.flags & kSizeMarks & ~TN_AXES_TERM_REDUCED)
        return fail_at(made.column, "a plain label inside ( )", "'" + name + "' with a mark");
      if (!number_label(made, name)) return false;
    }
    axes_.terms_.push_back(made);
    return true;
  }

  static uint32_t kind_of(uint32_t flags) {
    if (flags & TN_AXES_TERM_RUN) return TN_AXES_RUN;
    return flags & TN_AXES_TERM_BATCH ? TN_AXES_BATCH : TN_AXES_SINGLE;
  }

  bool number_label(tn_axes_term& made, const std::string& name) {
    const uint32_t kind = kind_of(made.flags);
    made.label = static_cast<uint32_t>(std::ranges::find(names_, name) - names_.begin());
    if (made.label == names_.size()) {
      names_.push_back(name);
      axes_.labels_.push_back({0, 0, kind, 0, 0, 0});
    }
    const uint32_t seen = axes_.labels_[made.label].kind;
    return seen == kind || fail_at(made.column, "'" + name + "' as before, " + kKinds[seen],
                                   std::string("it as ") + kKinds[kind]);
  }

  bool bind() {
    const uint32_t column = cursor_.column();
    const std::string name(cursor_.take_name());
    const auto found = std::ranges::find(names_, name);
    if (name.empty() || found == names_.end())
      return fail_at(column, "a label of the signature", name.empty() ? cursor_.describe() : name);
    const size_t label = static_cast<size_t>(found - names_.begin());
    if (axes_.labels_[label].kind == TN_AXES_BATCH || !binds_[label].empty())
      return fail_at(column, "a label or run that is not bound yet", "'" + name + "'");
    if (!cursor_.take("=")) return fail("'='");
    binds_[label] = cursor_.take_name();
    return !binds_[label].empty() || fail("the name of an attribute");
  }

  // Rules that hold for every rank; abi/axes.md numbers them.
  bool check() {
    std::vector<bool> in_input(names_.size());
    for (size_t o = 0; o < axes_.operands_.size(); ++o) {
      const bool is_input = o < axes_.n_inputs_;
      std::vector<bool> here(names_.size());
      for (const tn_axes_term& term : terms_of(o)) {
        if (term.label == TN_AXES_NO_LABEL) continue;
        const std::string name = "'" + names_[term.label] + "'";
        const bool single = axes_.labels_[term.label].kind == TN_AXES_SINGLE;
        if (!single && here[term.label])  // A1
          return fail_at(term.column, "a run once per operand", name + " again");
        if (is_input && term.flags & TN_AXES_TERM_PRIMED)  // A2
          return fail_at(term.column, "primes in outputs only", name + " primed in an input");
        const bool bound = !binds_[term.label].empty();
        const bool sized = bound || (single && term.flags & TN_AXES_TERM_PRIMED);
        if (!is_input && !in_input[term.label] && !sized)  // A3
          return fail_at(term.column, "a label of the inputs, a primed or a bound one", name);
        here[term.label] = true;
      }
      if (is_input)
        for (size_t l = 0; l < here.size(); ++l)
          in_input[l] = in_input[l] || here[l];
    }
    return check_ranks();
  }

  std::vector<tn_axes_term> terms_of(size_t operand) const {
    const auto first = axes_.terms_.begin() + axes_.operands_[operand].first_term;
    return {first, first + axes_.operands_[operand].n_terms};
  }

  // A4: the ranks of the inputs fix the length of every run. One operand gives one equation; a
  // batch takes the rest of its operand, so there every run must be known from elsewhere.
  bool check_ranks() {
    std::vector<bool> solved(names_.size());
    for (size_t l = 0; l < names_.size(); ++l)
      solved[l] = !binds_[l].empty();
    const tn_axes_term* open = nullptr;
    for (bool changed = true; changed;) {
      changed = false;
      open = nullptr;
      for (size_t o = 0; o < axes_.n_inputs_; ++o) {
        const auto [unsolved, has_batch, last] = unsolved_in(o, solved);
        if (unsolved == 0) continue;
        if (!open) open = &axes_.terms_[last];
        if (unsolved > 1 || has_batch) continue;
        solved[axes_.terms_[last].label] = changed = true;
      }
    }
    return !open || fail_at(open->column,
                            "ranks that fix the length of every run (bind it: ; " +
                                names_[open->label] + " = attribute)",
                            "'" + names_[open->label] + "' open");
  }

  struct Unsolved {
    uint32_t runs;
    bool has_batch;
    uint32_t last;
  };
  Unsolved unsolved_in(size_t operand, const std::vector<bool>& solved) const {
    Unsolved result{0, false, 0};
    uint32_t batches = 0;
    const tn_axes_operand& at = axes_.operands_[operand];
    for (uint32_t i = at.first_term; i < at.first_term + at.n_terms; ++i) {
      const tn_axes_term& term = axes_.terms_[i];
      if (term.flags & TN_AXES_TERM_BATCH && ++batches > 1) result = {result.runs + 1, true, i};
      if (term.flags & TN_AXES_TERM_BATCH) result.has_batch = true;
      if (term.flags & TN_AXES_TERM_RUN && !solved[term.label])
        result = {result.runs + 1, result.has_batch, i};
    }
    return result;
  }

  void print() {
    std::string& text = axes_.text_;
    if (axes_.is_pointwise()) {
      text = "*";
      return;
    }
    for (size_t o = 0; o < axes_.operands_.size(); ++o) {
      text += o == 0 ? "" : o == axes_.n_inputs_ ? " -> " : ", ";
      const tn_axes_operand& operand = axes_.operands_[o];
      if (operand.n_terms == 0) text += "[]";
      for (uint32_t i = 0; i < operand.n_terms; ++i)
        print_term(operand, i);
      if (operand.flags & TN_AXES_OPERAND_OPTIONAL) text += "?";
    }
    const char* before = " ; ";
    for (size_t l = 0; l < binds_.size(); ++l) {
      if (binds_[l].empty()) continue;
      text += std::exchange(before, ", ") + names_[l] + " = ";
      axes_.labels_[l].bind_offset = static_cast<uint32_t>(text.size());
      axes_.labels_[l].bind_len = static_cast<uint32_t>(binds_[l].size());
      text += binds_[l];
    }
  }

  void print_term(const tn_axes_operand& operand, uint32_t i) {
    std::string& text = axes_.text_;
    tn_axes_term* const terms = axes_.terms_.data() + operand.first_term;
    tn_axes_term& term = terms[i];
    const bool grouped = term.flags & TN_AXES_TERM_GROUPED;
    const bool first = i == 0 || terms[i - 1].dim != term.dim;
    const bool last = i + 1 == operand.n_terms || terms[i + 1].dim != term.dim;
    if (i > 0) text += " ";
    if (grouped && first) text += "(";
    term.column = static_cast<uint32_t>(text.size() + 1);
    if (term.label == TN_AXES_NO_LABEL) {
      text += std::to_string(term.size);
    } else {
      tn_axes_label& label = axes_.labels_[term.label];
      if (label.name_len == 0) label.name_offset = static_cast<uint32_t>(text.size());
      label.name_len = static_cast<uint32_t>(names_[term.label].size());
      text += names_[term.label];
    }
    if (term.flags & TN_AXES_TERM_PRIMED) text += "'";
    if (term.flags & TN_AXES_TERM_REDUCED) text += "~";
    if (term.flags & TN_AXES_TERM_RUN) text += "..";
    if (term.flags & TN_AXES_TERM_BATCH) text += "*";
    if (grouped && last) text += ")";
  }

  TextCursor cursor_;
  Axes axes_;
  std::vector<std::string> names_;  // by label
  std::vector<std::string> binds_;  // by label; empty: none
  ParseError error_;                // column 0: none yet
};

Parsed<Axes> Axes::parse(std::string_view text) {
  return AxesParser(text).parse();
}

tn_axes Axes::view() const {
  const auto n_outputs = static_cast<uint32_t>(operands_.size()) - n_inputs_;
  return {labels_.data(), operands_.data(), terms_.data(),
          text_.data(),   text_.size(),     static_cast<uint32_t>(labels_.size()),
          n_inputs_,      n_outputs,        static_cast<uint32_t>(terms_.size())};
}

std::optional<uint32_t> Axes::label(std::string_view name) const {
  for (uint32_t i = 0; i < labels_.size(); ++i)
    if (std::string_view(text_).substr(labels_[i].name_offset, labels_[i].name_len) == name)
      return i;
  return {};
}

}  // namespace tenon::host
