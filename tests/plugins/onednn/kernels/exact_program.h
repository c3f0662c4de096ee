// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a program of exact.h once.

#include <type_traits>

#include <gtest/gtest.h>

#include "kernels/exact.h"

namespace tenon::onednn::kernels {

template <class T>
constexpr uint32_t kDomain = std::is_floating_point_v<T> ? TN_EXPR_DOMAIN_FLOAT
                             : std::is_signed_v<T>       ? TN_EXPR_DOMAIN_INT
                                                         : TN_EXPR_DOMAIN_UINT;

// What a plan makes of doubles, or of 64-, 32-, 16- or 8-bit integers T; a failure where there is
// none.
template <class T, class Result = T>
void run_exact(const Context& context,
               std::span<const tn_expr_node> nodes,
               std::span<const int64_t> dims,
               std::span<const ExactEdge> inputs,
               std::vector<const void*> sources,
               ElementType output,
               Result* to) {
  ExactPlan plan;
  const ExactResult result = {static_cast<uint32_t>(nodes.size()) - 1, output};
  ASSERT_EQ(plan.make({.nodes = nodes,
                       .domain = kDomain<T>,
                       .bits = 8 * sizeof(T),
                       .dims = dims,
                       .inputs = inputs,
                       .results = {&result, 1}}),
            "");
  void* target = to;
  plan.run(context, sources.data(), &target);
}

}  // namespace tenon::onednn::kernels
