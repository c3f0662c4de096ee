// SPDX-License-Identifier: Apache-2.0
#pragma once
// One kernel for a group of pointwise nodes. Its text says nothing about sizes, only how many axes
// there are and which inputs are broadcast, so that one compiled kernel serves many shapes.

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/expr.h"

namespace tenon::cuda {

using Dims = std::vector<int64_t>;

// The C++ type of an element in kernels, or empty when kernels have none.
const char* element_text(uint32_t dtype);

// One node of a group. Operands name what earlier nodes made, or the group's inputs.
struct PointwisePart {
  tn_expr_program program = {};  // count 0: the operand as it is (Cast)
  struct Operand {
    bool is_input = false;
    int index = -1;  // of the group's input, or of the part; -1: absent
  };
  std::vector<Operand> operands;
  uint32_t dtype = 0;  // of the result
};

struct PointwiseGroup {
  struct Input {
    uint32_t dtype = 0;
    Dims dims;  // as given; broadcast to the group's
  };
  std::vector<Input> inputs;
  std::vector<PointwisePart> parts;  // the last one's result is stored
  Dims dims;
  uint32_t dtype = 0;
};

// Axes merged where every input walks them alike, the innermost first; strides in elements.
struct PointwiseLayout {
  std::vector<int64_t> dims;                  // the innermost in vectors of `width`
  std::vector<std::vector<int64_t>> strides;  // by input, then by axis
  int width = 1;
  int64_t count = 0;  // vectors in all
};

PointwiseLayout layout_of(const PointwiseGroup& group);

struct PointwiseText {
  std::string symbol;
  std::string source;           // without element.cuh in front
  std::vector<uint64_t> words;  // arguments; addresses are zero and come first: inputs, output
};

// Empty symbol: an intrinsic that is not known.
PointwiseText pointwise_text(const PointwiseGroup& group);
// The kernel of such a text for several jobs at once, each with n_words words of its own. In front
// of the words: the first block of each job, and the number of blocks. Its words are left empty.
PointwiseText joined_text(const std::string& symbol,
                          const std::string& source,
                          size_t n_words,
                          size_t n_jobs);

}  // namespace tenon::cuda
