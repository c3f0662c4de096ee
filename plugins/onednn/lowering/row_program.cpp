// SPDX-License-Identifier: Apache-2.0
#include "row_program.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cpu.hpp"

namespace tenon::onednn {
namespace {

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

std::string RowProgram::make(Stages stages,
                             Extent extent,
                             int64_t n_slots,
                             kernels::code::CodeStore* code_store) {
  stages_ = std::move(stages);
  extent_ = std::move(extent);
  inner_ = extent_.rows;
  for (int64_t size : extent_.outer)
    inner_ /= size;
  const int64_t columns = extent_.columns;
  const int64_t fitting = kSlotFloats / (std::max<int64_t>(n_slots, 1) * columns);
  block_ = std::min({inner_, fitting, std::max<int64_t>(1, kBlockFloats / columns)});
  if (block_ < 1) return "rows too long for a block";
  for (RowStage& stage : stages_.in_blocks) {
    if (stage.sources.size() + stage.targets.size() > kMostEdges) return "too many operands";
    if (stage.program.empty()) continue;
    if (std::string why = make_plan(stage, 0, block_, code_store); !why.empty()) return why;
    const int64_t rest = inner_ % block_;
    if (rest == 0) continue;
    if (std::string why = make_plan(stage, 1, rest, code_store); !why.empty()) return why;
  }
  return {};
}

std::string RowProgram::how() const {
  for (const RowStage& stage : stages_.in_blocks)
    for (const auto& plan : stage.plans)
      if (plan && !plan->interpreted_because().empty()) return plan->how();
  return "generated";
}

void* RowProgram::address(const RowEdge& edge,
                          void* const* pointers,
                          float* slots,
                          int64_t row) const {
  if (edge.place < 0) return slots + (-1 - edge.place) * block_ * extent_.columns;
  int64_t at = row * edge.row_elements;
  if (!edge.outer.empty()) {
    at = row % inner_ * edge.row_elements;
    int64_t index = row / inner_;
    for (size_t axis = extent_.outer.size(); axis-- > 0; index /= extent_.outer[axis])
      at += index % extent_.outer[axis] * edge.outer[axis];
  }
  return static_cast<char*>(pointers[edge.place]) + at * kernels::element_bytes(edge.type);
}

void RowProgram::run_block(const kernels::Context& context,
                           void* const* pointers,
                           float* slots,
                           int64_t row,
                           int64_t count) const {
  for (const RowStage& stage : stages_.in_blocks) {
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
  const int64_t blocks_of_inner = (inner_ + block_ - 1) / block_;
  const int64_t n_blocks = extent_.rows / inner_ * blocks_of_inner;
  int64_t n_edges = 0;
  for (const RowStage& stage : stages_.in_blocks)
    n_edges += static_cast<int64_t>(stage.sources.size() + stage.targets.size());
  const int64_t grain = kernels::grain_rows(block_ * extent_.columns * 4 * n_edges);
  kernels::parallel_for(context.parallel, n_blocks, grain, [&](int64_t lo, int64_t hi) {
    alignas(64) float slots[kSlotFloats];
    for (int64_t block = lo; block < hi; ++block) {
      const int64_t row = block % blocks_of_inner * block_;
      run_block(alone, pointers, slots, block / blocks_of_inner * inner_ + row,
                std::min(block_, inner_ - row));
    }
  });
  for (const PartsReduction& last : stages_.of_parts)
    kernels::reduce(alone, {.kind = last.kind,
                            .src = {pointers[last.from], kernels::ElementType::kF32, {}},
                            .dst = {pointers[last.to], kernels::ElementType::kF32, {}},
                            .outer = last.rows,
                            .k = last.parts,
                            .inner = 1});
}

}  // namespace tenon::onednn
