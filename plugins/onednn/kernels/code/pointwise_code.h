// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pointwise program as one loop of machine code: each source is read once, each target written
// once, and all between stays in registers. Immutable once made; any number of threads may run it.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "../pointwise_program.h"
#include "../types.h"
#include "vector_code.h"

namespace tenon::onednn::kernels::code {

struct CodeEdge {
  ElementType type = ElementType::kF32;
  Quant quant = {};
  bool is_repeated = false;  // sources: one element for the whole loop
};

class PointwiseCode {
 public:
  static constexpr size_t kMostEdges = 96;

  virtual ~PointwiseCode() = default;
  // nullptr where there is no code for it; *why then says what is missing. On processors other than
  // x86-64 there is none at all (absent.cpp).
  static std::unique_ptr<const PointwiseCode> make(const Program& program,
                                                   std::span<const CodeEdge> sources,
                                                   std::span<const CodeEdge> targets,
                                                   Isa isa,
                                                   std::string* why);
  // pointers: the sources, then the targets. With `past_caches`, f32 targets are written so.
  virtual void run(void* const* pointers, int64_t n, bool past_caches) const = 0;
};

}  // namespace tenon::onednn::kernels::code
