// SPDX-License-Identifier: Apache-2.0
// tenon:CumProdGrad(dy, x): forward along the axis the product in front of each element, backward
// the sum that is carried from the end, both in f64.

#include <algorithm>
#include <array>
#include <type_traits>

#include "dense.hpp"

namespace tenon::onednn {
namespace {

struct ProductGrad {
  AxisSplit split;
  ElementType type = ElementType::kF32;
  bool is_exclusive = false;
  bool is_reverse = false;

  // Where the k-th factor of a column is.
  int64_t at(int64_t k) const { return (is_reverse ? split.k - 1 - k : k) * split.inner; }
};

constexpr int64_t kColumns = 128;  // neighbours along the axes behind, which are computed at once

// n columns of T, `inner` apart from row to row; n is known where there is but one.
template <class T, class Count>
void run_columns(const ProductGrad& g, Count n, const T* dy, const T* x, T* dx) {
  std::array<double, kColumns> carried;
  std::fill_n(carried.begin(), n, 1.0);
  for (int64_t k = 0; k < g.split.k; ++k) {
    const int64_t at = g.at(k);
    for (int64_t i = 0; i < n; ++i) {
      double& product = carried[static_cast<size_t>(i)];
      dx[at + i] = static_cast<T>(product);
      product *= static_cast<double>(x[at + i]);
    }
  }
  std::fill_n(carried.begin(), n, 0.0);
  for (int64_t k = g.split.k; k-- > 0;) {
    const int64_t at = g.at(k);
    for (int64_t i = 0; i < n; ++i) {
      double& sum = carried[static_cast<size_t>(i)];
      const double change = static_cast<double>(dy[at + i]),
                   number = static_cast<double>(x[at + i]);
      const double given = g.is_exclusive ? sum : change + sum;
      dx[at + i] = static_cast<T>(static_cast<double>(dx[at + i]) * given);
      sum = g.is_exclusive ? change + number * sum : number * given;
    }
  }
}

template <class T>
void run_block(const ProductGrad& g, int64_t block, void* const* pointers) {
  const int64_t n_blocks = (g.split.inner + kColumns - 1) / kColumns;
  const int64_t first = block % n_blocks * kColumns;
  const int64_t at = block / n_blocks * g.split.k * g.split.inner + first;
  const int64_t n = std::min(kColumns, g.split.inner - first);
  const T *dy = static_cast<const T*>(pointers[0]) + at,
          *x = static_cast<const T*>(pointers[1]) + at;
  T* dx = static_cast<T*>(pointers[2]) + at;
  if (n == 1)
    run_columns(g, std::integral_constant<int64_t, 1>{}, dy, x, dx);
  else
    run_columns(g, n, dy, x, dx);
}

}  // namespace

std::string refuse_cumulative_product_grad(const Graph& graph, const Node& node) {
  const Value& x = graph.values[node.inputs[1]];
  if (x.type != ElementType::kF32 && x.type != ElementType::kF64) return "only f32 and f64";
  return x.dims.empty() ? "a scalar" : "";
}

void lower_cumulative_product_grad(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& x = lowering.graph().values[node.inputs[1]];
  const int64_t axis = positive_axis(node.integer("axis", -1), x.dims.size());
  const ProductGrad g{.split = split_at(x.dims, axis),
                      .type = x.type,
                      .is_exclusive = node.integer("exclusive", 0) != 0,
                      .is_reverse = node.integer("reverse", 0) != 0};
  lower_dense(lowering, index, "tenon:cumulative_product_grad",
              [g](const kernels::Context& context, void* const* pointers) -> const char* {
                const int64_t n_blocks =
                    g.split.outer * ((g.split.inner + kColumns - 1) / kColumns);
                const int64_t bytes = 16 * g.split.k * std::min(g.split.inner, kColumns);
                const auto run = g.type == ElementType::kF64 ? run_block<double> : run_block<float>;
                kernels::parallel_for(context.parallel, n_blocks, kernels::grain_rows(bytes),
                                      [&](int64_t lo, int64_t hi) {
                                        for (int64_t block = lo; block < hi; ++block)
                                          run(g, block, pointers);
                                      });
                return nullptr;
              });
}

}  // namespace tenon::onednn
