// SPDX-License-Identifier: Apache-2.0
#pragma once
// One pointwise program in exact arithmetic: integers that wrap to their width, in 64 bits, or in
// 32 or 8 where their types have no more, and f64. What the f32 kernel (pointwise.h) would round
// runs here: index arithmetic, comparisons of wide integers, masks, casts to integers, double. The
// rules are abi/expr.md's. Tiles stay in L1; each instruction is one loop over the tile, in the
// vectors of the level. Operands of the width of the arithmetic and without gaps are read where
// they lie, and a single result of that width is made where it is wanted. A plan is immutable, runs
// on any thread and allocates nothing. A target may be exactly one of the sources; no other overlap
// is allowed.

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

struct ExactResult {
  uint32_t node = 0;
  ElementType type = ElementType::kI64;  // dense and row-major
};

struct ExactSpec {
  std::span<const tn_expr_node> nodes;
  uint32_t domain = TN_EXPR_DOMAIN_INT;
  uint32_t bits = 64;
  std::span<const int64_t> dims;
  std::span<const ExactEdge> inputs;
  std::span<const ExactResult> results;
};

class ExactPlan {
 public:
  static constexpr size_t kMostNodes = 96;
  static constexpr size_t kMostInputs = 64;

  // Empty on success, else why this program cannot run here.
  [[nodiscard]] std::string make(const ExactSpec& spec);
  // targets: one for each result, in their order
  void run(const Context& context, const void* const* sources, void* const* targets) const;

 private:
  // The room and the places of one thread: of each node where its numbers of this tile are.
  template <class N>
  struct Frame;

  int64_t tiles_of_row() const;
  bool lies_ready(const tn_expr_node& node) const;
  bool is_only_compared(const ExactResult& result) const;
  bool is_made_in_place() const;
  template <class Domain>
  void run_tiles(const Domain& domain,
                 const void* const* sources,
                 void* const* targets,
                 int64_t lo,
                 int64_t hi) const;
  template <class Domain>
  void run_tile(const Domain& domain, Frame<typename Domain::Number>& frame, int64_t n) const;
  template <class Domain>
  void store_tile(const Domain& domain,
                  const Frame<typename Domain::Number>& frame,
                  int64_t n,
                  void* const* targets,
                  int64_t at) const;

  std::vector<tn_expr_node> nodes_;
  std::vector<ExactResult> results_;
  std::vector<bool> is_compared_;  // of each node: it is stored as it is compared
  std::vector<ElementType> types_;
  std::vector<int64_t> dims_;                  // merged, at least one
  std::vector<std::vector<int64_t>> strides_;  // [inputs][rank]
  uint32_t domain_ = 0;
  uint32_t bits_ = 64;
  ElementType own_ = ElementType::kI64;  // the type that numbers have in a tile
  bool in_place_ = false;                // the last node is made in the target
};

}  // namespace tenon::onednn::kernels
