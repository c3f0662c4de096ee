// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a row group runs: stages that each go over one block of rows before the next block begins.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kernels/pointwise.h"
#include "kernels/reduce.h"

namespace tenon::onednn {

struct RowEdge {
  int place = 0;  // among the step's; from -1 down: slots for what never leaves the block
  kernels::ElementType type = kernels::ElementType::kF32;
  int64_t row_elements = 0;  // from one row to the next: the row's length, 1, or 0 for all rows
  int64_t step = 1;          // from one column to the next: 1, or 0 for one number in each row
  // Of what is broadcast along some of the outer axes: from one to the next along each of them, and
  // row_elements within. Empty: the rows of all outer axes lie one behind the other.
  std::vector<int64_t> outer = {};
};

struct RowStage {
  std::vector<tn_expr_node> program = {};  // empty: reduces its one source
  std::vector<uint32_t> results = {};
  std::vector<RowEdge> sources = {};
  std::vector<RowEdge> targets = {};
  kernels::Reduction reduction = kernels::Reduction::kSum;
  int64_t columns = 1;  // of its targets, or of the source that it reduces
  // For a whole block of rows, and for the last one.
  std::array<std::shared_ptr<kernels::PointwisePlan>, 2> plans = {};
};

// Where rows are cut in parts: the numbers of a row's parts become one.
struct PartsReduction {
  kernels::Reduction kind = kernels::Reduction::kSum;  // whose result for parts it reads
  int from = 0, to = 0;                                // among the step's places, f32
  int64_t rows = 0, parts = 0;
};

class RowProgram {
 public:
  struct Stages {
    std::vector<RowStage> in_blocks = {};
    std::vector<PartsReduction> of_parts = {};  // behind all blocks
  };
  static constexpr int64_t kSlotFloats = 16384;  // 64 KiB of stack, all slots together
  static constexpr size_t kMostEdges = 32;       // of a stage

  struct Extent {
    int64_t rows = 0, columns = 0;
    std::vector<int64_t> outer = {};  // outer axes of the rows, where an edge has strides for them
  };

  // Empty on success, else why it cannot run.
  [[nodiscard]] std::string make(Stages stages,
                                 Extent extent,
                                 int64_t n_slots,
                                 kernels::code::CodeStore* code_store);
  void run(const kernels::Context& context, void* const* pointers) const;
  // "generated", or how the first of its stages runs that is interpreted.
  std::string how() const;

 private:
  void run_block(const kernels::Context& context,
                 void* const* pointers,
                 float* slots,
                 int64_t row,
                 int64_t count) const;
  void* address(const RowEdge& edge, void* const* pointers, float* slots, int64_t row) const;

  Stages stages_;
  Extent extent_;
  int64_t inner_ = 0;  // rows that lie one behind the other in each edge
  int64_t block_ = 1;  // rows
};

}  // namespace tenon::onednn
