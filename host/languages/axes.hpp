// SPDX-License-Identifier: Apache-2.0
#pragma once
// Axis signatures of operators (abi/axes.md): parsed and checked once per operator row, then asked
// with one node's ranks (layout: which axis carries which label) or shapes (infer). Immutable after
// parse: any thread.
//
//   Parsed<Axes> matmul = Axes::parse("B* m k, B* k n -> B* m n");
//   Parsed<AxesLayout> layout = matmul->layout({3, 2});
//   layout->places(*matmul->label("k"), matmul->view())  // input 0 axis 2, input 1 axis 0

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/axes.h"
#include "tenon/type.h"

#include "languages/parse_error.hpp"

namespace tenon::host {

// A size, or TN_DIM_UNKNOWN with the symbol that names it (empty: nothing is known).
struct AxesDim {
  int64_t size = TN_DIM_UNKNOWN;
  std::string symbol = {};

  bool is_known() const { return size != TN_DIM_UNKNOWN; }
  bool operator==(const AxesDim&) const = default;
};
using AxesShape = std::vector<AxesDim>;

using AxesRanks = std::vector<std::optional<uint32_t>>;    // empty: an absent optional input
using AxesShapes = std::vector<std::optional<AxesShape>>;  // likewise
// The integer attributes that binds ("; g = group") name, defaults filled in.
using AxesAttributes = std::function<std::optional<int64_t>(std::string_view name)>;

// Where a label stands. A run covers `count` axes from `axis`, maybe none.
struct AxesPlace {
  uint32_t operand;  // inputs of the node first, then outputs
  uint32_t axis;
  uint32_t count;
  uint32_t term;   // index in tn_axes.terms
  uint32_t first;  // batch labels align right: index in the output's run of this run's first axis
};

struct AxesLayout {
  std::vector<uint32_t> run_lengths;        // by label; 1 for a single one
  std::vector<uint32_t> ranks;              // by operand, outputs included; 0 for absent inputs
  std::map<uint32_t, int64_t> bound_sizes;  // of single labels that name an attribute
  std::vector<AxesPlace> all;               // in the order of operands and terms

  std::vector<AxesPlace> places(uint32_t label, const tn_axes& axes) const;
};

struct AxesInferred {
  std::vector<AxesShape> outputs;
  bool complete;  // false: some output size is primed or new, the row's shape column must say it
};

// NumPy's rule for one axis; empty when both are known, differ, and neither is 1.
std::optional<AxesDim> broadcast(const AxesDim& a, const AxesDim& b);

class Axes {
 public:
  static Parsed<Axes> parse(std::string_view text);

  const std::string& text() const { return text_; }  // canonical
  tn_axes view() const;                              // lives as long as this stays where it is
  std::optional<uint32_t> label(std::string_view name) const;
  bool is_pointwise() const { return operands_[0].flags & TN_AXES_OPERAND_REPEATED; }

  Parsed<AxesLayout> layout(const AxesRanks& inputs, const AxesAttributes& attributes = {}) const;
  Parsed<AxesInferred> infer(const AxesShapes& inputs, const AxesAttributes& attributes = {}) const;
  // Does what the shape column said agree? Unknown sizes agree with anything.
  std::optional<ParseError> disagreement(const AxesShapes& inputs,
                                         const AxesShapes& outputs,
                                         const AxesAttributes& attributes = {}) const;

 private:
  friend class AxesParser;
  friend class AxesRankSolver;
  friend class AxesSizeSolver;

  // For messages; a run without a name is "*".
  std::string name(uint32_t label) const {
    const tn_axes_label& at = labels_[label];
    return at.name_len ? text_.substr(at.name_offset, at.name_len) : "*";
  }

  std::string text_;
  std::vector<tn_axes_label> labels_;
  std::vector<tn_axes_operand> operands_;
  std::vector<tn_axes_term> terms_;
  uint32_t n_inputs_ = 0;
};

}  // namespace tenon::host
