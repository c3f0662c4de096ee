// SPDX-License-Identifier: Apache-2.0
#include "row_program.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cpu.hpp"

namespace tenon::onednn {
namespace {

constexpr size_t kMostEdges = 32;
constexpr int64_t kBlockFloats = 8192;  // of one value: a few of them fit the second cache

kernels::PointwiseEdge laid_out(const RowEdge& edge) {
  return {edge.type, {}, {edge.row_elements, edge.step}};
}

std::string make_plan(RowStage& stage,
                      size_t which,
                      int64_t rows,
                      kernels::code::CodeStore* code_store) {
  std::vector<kernels::PointwiseEdge> sources, targets;
  std::transform(stage.sources.begin(), stage.sources.end(), std::back_inserter(sources), laid_out);
  std::transform(stage.targets.begin(), stage.targets.end(), std::back_inserter(targets), laid_out);
  const std::array<int64_t, 2> dims = {rows, stage.columns};
  stage.plans[which] = std::make_shared<kernels::PointwisePlan>();
  return stage.plans[which]->make({.nodes = stage.program,
                                   .results = stage.results,
                                   .dims = dims,
                                   .inputs = sources,
                                   .outputs = targets,
                                   .level = best_level(),
                                   .code_store = code_store});
}

}  // namespace

std::string RowProgram::make(std::vector<RowStage> stages,
                             int64_t rows,
                             int64_t columns,
                             int64_t n_slots,
                             kernels::code::CodeStore* code_store) {
  stages_ = std::move(stages);
  rows_ = rows;
  columns_ = columns;
  const int64_t fitting = kSlotFloats / (std::max<int64_t>(n_slots, 1) * columns);
  block_ = std::min({rows, fitting, std::max<int64_t>(1, kBlockFloats / columns)});
  if (block_ < 1) return "rows too long for a block";
  for (RowStage& stage : stages_) {
    if (stage.sources.size() + stage.targets.size() > kMostEdges) return "too many operands";
    if (stage.program.empty()) continue;
    if (std::string why = make_plan(stage, 0, block_, code_store); !why.empty()) return why;
    if (rows % block_ == 0) continue;
    if (std::string why = make_plan(stage, 1, rows % block_, code_store); !why.empty()) return why;
  }
  return {};
}

std::string RowProgram::how() const {
  for (const RowStage& stage : stages_)
    for (const auto& plan : stage.plans)
      if (plan && !plan->interpreted_because().empty()) return plan->how();
  return "generated";
}

void* RowProgram::address(const RowEdge& edge,
                          void* const* pointers,
                          float* slots,
                          int64_t row) const {
  if (edge.place < 0) return slots + (-1 - edge.place) * block_ * columns_;
  return static_cast<char*>(pointers[edge.place]) +
         row * edge.row_elements * kernels::element_bytes(edge.type);
}

void RowProgram::run_block(const kernels::Context& context,
                           void* const* pointers,
                           float* slots,
                           int64_t row,
                           int64_t count) const {
  for (const RowStage& stage : stages_) {
    std::array<const void*, kMostEdges> sources;
    std::array<void*, kMostEdges> targets;
    for (size_t i = 0; i < stage.sources.size(); ++i)
      sources[i] = address(stage.sources[i], pointers, slots, row);
    for (size_t i = 0; i < stage.targets.size(); ++i)
      targets[i] = address(stage.targets[i], pointers, slots, row);
    if (stage.program.empty()) {
      kernels::reduce(context, {.kind = stage.reduction,
                                .src = {sources[0], stage.sources[0].type, {}},
                                .dst = {targets[0], stage.targets[0].type, {}},
                                .outer = count,
                                .k = stage.columns,
                                .inner = 1});
      continue;
    }
    stage.plans[count == block_ ? 0 : 1]->run(context, {sources.data(), stage.sources.size()},
                                              {targets.data(), stage.targets.size()});
  }
}

void RowProgram::run(const kernels::Context& context, void* const* pointers) const {
  const kernels::Context alone{context.table, {}};
  const int64_t n_blocks = (rows_ + block_ - 1) / block_;
  int64_t n_edges = 0;
  for (const RowStage& stage : stages_)
    n_edges += static_cast<int64_t>(stage.sources.size() + stage.targets.size());
  const int64_t grain = kernels::grain_rows(block_ * columns_ * 4 * n_edges);
  kernels::parallel_for(context.parallel, n_blocks, grain, [&](int64_t lo, int64_t hi) {
    alignas(64) float slots[kSlotFloats];
    for (int64_t block = lo; block < hi; ++block) {
      const int64_t row = block * block_;
      run_block(alone, pointers, slots, row, std::min(block_, rows_ - row));
    }
  });
}

}  // namespace tenon::onednn
