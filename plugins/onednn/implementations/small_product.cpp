// SPDX-License-Identifier: Apache-2.0
// A product of two small matrices of f32 by plain loops: where a primitive takes longer to begin
// than to multiply, as in the body of a loop over small tensors.

#include <algorithm>
#include <array>
#include <string>

#include "product.hpp"

namespace tenon::onednn {
namespace {

// tests/bench/functions/README.md has the sweep.
constexpr int64_t kMostProducts = 1024;
constexpr size_t kMostColumns = 64;

struct SmallProduct {
  int64_t m, n, k;
  int64_t a_row, a_k, b_k, b_column;  // strides
};

// dst: [m, n]; a row of it at a time, k in order.
void multiply(const SmallProduct& p, const float* a, const float* b, float* dst) {
  std::array<float, kMostColumns> sums;
  for (int64_t i = 0; i < p.m; ++i) {
    std::fill_n(sums.begin(), p.n, 0.0F);
    for (int64_t k = 0; k < p.k; ++k) {
      const float factor = a[i * p.a_row + k * p.a_k];
      const float* row = b + k * p.b_k;
      for (int64_t j = 0; j < p.n; ++j)
        sums[static_cast<size_t>(j)] += factor * row[j * p.b_column];
    }
    std::copy_n(sums.begin(), p.n, dst + i * p.n);
  }
}

// Of one column: a row of the left matrix at a time, in four sums that do not wait for each other.
void multiply_column(const SmallProduct& p, const float* a, const float* b, float* dst) {
  for (int64_t i = 0; i < p.m; ++i) {
    const float* row = a + i * p.a_row;
    std::array<float, 4> sums = {};
    int64_t k = 0;
    for (; k + 4 <= p.k; k += 4)
      for (int64_t u = 0; u < 4; ++u)
        sums[static_cast<size_t>(u)] += row[(k + u) * p.a_k] * b[(k + u) * p.b_k];
    float total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (; k < p.k; ++k)
      total += row[k * p.a_k] * b[k * p.b_k];
    dst[i] = total;
  }
}

}  // namespace

Offer offer_small_product(const ProductSite& site) {
  const int value = site.node().outputs[0];
  View a, b;
  if (const std::string why = plain_operands(site, &a, &b); !why.empty()) return refused(why);
  const size_t of_a = a.dims.size(), of_b = b.dims.size();
  const SmallProduct p{a.dims[of_a - 2],    b.dims[of_b - 1],    a.dims[of_a - 1],
                       a.strides[of_a - 2], a.strides[of_a - 1], b.strides[of_b - 2],
                       b.strides[of_b - 1]};
  if (p.m * p.n * p.k > kMostProducts || p.n > static_cast<int64_t>(kMostColumns))
    return refused("more than " + std::to_string(kMostProducts) + " products or 64 columns");
  return accepted([&site, a, b, p, value] {
    Lowering& l = site.lowering;
    const Dims& dims = l.graph().values[value].dims;
    const View dst = l.make(value, ElementType::kF32, row_major_strides(dims));
    Step step{.name = site.node().name, .kernel = "tenon:small_product", .always_succeeds = true};
    step.flops = 2.0 * static_cast<double>(p.m * p.n * p.k);
    step.bytes = static_cast<double>(a.bytes() + b.bytes() + dst.bytes());
    step.places = {place_of(a), place_of(b), place_of(dst)};
    step.kernel_function = [p](const kernels::Context&, void* const* pointers) -> const char* {
      const auto run = p.n == 1 ? multiply_column : multiply;
      run(p, static_cast<const float*>(pointers[0]), static_cast<const float*>(pointers[1]),
          static_cast<float*>(pointers[2]));
      return nullptr;
    };
    l.add_step(std::move(step));
  });
}

}  // namespace tenon::onednn
