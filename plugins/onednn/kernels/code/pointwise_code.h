// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pointwise program as one loop of machine code: each source is read once, each target written
// once, and all between stays in registers. Immutable once made; any number of threads may run it.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../pointwise_program.h"
#include "../types.h"
#include "assembler.h"

namespace tenon::onednn::kernels::code {

struct CodeEdge {
  ElementType type = ElementType::kF32;
  Quant quant = {};
  bool is_repeated = false;  // sources: one element for the whole loop
};

class PointwiseCode {
 public:
  static constexpr size_t kMostEdges = 96;

  // nullptr where there is no code for it; *why then says what is missing.
  static std::unique_ptr<const PointwiseCode> make(const Program& program,
                                                   std::span<const CodeEdge> sources,
                                                   std::span<const CodeEdge> targets,
                                                   Isa isa,
                                                   std::string* why);
  // pointers: the sources, then the targets. With `past_caches`, f32 targets are written so.
  void run(void* const* pointers, int64_t n, bool past_caches) const;

 private:
  PointwiseCode(VectorCode code,
                std::span<const CodeEdge> sources,
                std::span<const CodeEdge> targets);
  using Pointers = std::array<void*, kMostEdges>;
  Pointers moved(void* const* pointers, int64_t elements) const;
  int64_t until_aligned(void* const* pointers) const;
  void run_in_caches(void* const* pointers, int64_t n) const;
  void run_padded(void* const* pointers, int64_t n) const;
  bool writes_over_a_source(void* const* pointers) const;
  size_t size_of(size_t edge, int64_t n) const { return static_cast<size_t>(bytes_[edge] * n); }

  VectorCode code_;
  std::vector<int64_t> bytes_;  // by edge: from one element to the next
  size_t n_sources_;
  Assembler assembler_;
  std::vector<ConstantLine> constants_;
};

}  // namespace tenon::onednn::kernels::code
