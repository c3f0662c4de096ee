// SPDX-License-Identifier: Apache-2.0
#pragma once
// One pointwise program in 64-bit arithmetic: integers that wrap to their width, and f64. What the
// f32 kernel (pointwise.h) would round runs here: index arithmetic, comparisons of wide integers,
// casts between integers, double. The rules are abi/expr.md's. Tiles stay in L1; each instruction
// is one loop over the tile, integers in the vectors of the level. A plan is immutable, runs on any
// thread and allocates nothing.

#include <span>
#include <string>
#include <vector>

#include "tenon/expr.h"

#include "context.h"

namespace tenon::onednn::kernels {

struct ExactEdge {
  ElementType type = ElementType::kI64;
  std::vector<int64_t> strides = {};  // [rank], in elements; 0 repeats
};

struct ExactSpec {
  std::span<const tn_expr_node> nodes;
  uint32_t domain = TN_EXPR_DOMAIN_INT;
  uint32_t bits = 64;
  std::span<const int64_t> dims;
  std::span<const ExactEdge> inputs;
  ElementType output = ElementType::kI64;  // dense and row-major
};

class ExactPlan {
 public:
  static constexpr size_t kMostNodes = 96;
  static constexpr size_t kMostInputs = 64;

  // Empty on success, else why this program cannot run here.
  [[nodiscard]] std::string make(const ExactSpec& spec);
  void run(const Context& context, const void* const* sources, void* target) const;

 private:
  int64_t tiles_of_row() const;
  template <class Domain>
  void run_tiles(
      const Domain& domain, const void* const* sources, void* target, int64_t lo, int64_t hi) const;
  template <class Domain>
  void run_tile(const Domain& domain,
                const void* const* sources,
                const int64_t* at,
                int64_t n,
                typename Domain::Number* values) const;

  std::vector<tn_expr_node> nodes_;
  std::vector<ElementType> types_;
  std::vector<int64_t> dims_;                  // merged, at least one
  std::vector<std::vector<int64_t>> strides_;  // [inputs][rank]
  uint32_t domain_ = 0;
  uint32_t bits_ = 64;
  ElementType output_ = ElementType::kI64;
};

}  // namespace tenon::onednn::kernels
