// SPDX-License-Identifier: Apache-2.0
// Products of f32 numbers with constant weights on vectors.

#include "float_product.hpp"

#include <string>
#include <utility>

#include "cpu.hpp"
#include "float_step.hpp"

namespace tenon::onednn {
namespace {

// With more, oneDNN is faster: on AVX-512 MiniLM takes 1.01 times as long by it with 64 rows, 0.987
// with 128 and 0.967 with 512; on AVX2 products of 2048 rows take 0.81 to 0.99.
int64_t most_rows() {
  return best_level() == kernels::Level::kAvx512 ? 64 : 1024;
}

// Empty: it is faster than oneDNN.
std::string why_slower(const FloatStep& made) {
  if (made.step.args.m > most_rows())
    return "more than " + std::to_string(most_rows()) + " rows, for which oneDNN is faster";
  return "";
}

}  // namespace

Offer offer_float_product(const ProductSite& site) {
  if (best_level() < kernels::Level::kAvx2) return refused("the CPU has no fused multiply-add");
  FloatStep made;
  if (std::string why = find_float_step(site, &made); !why.empty()) return refused(std::move(why));
  return accepted_unless(why_slower(made), [&site, made]() mutable {
    made.step.src = site.lowering.read_row_major(site.product.a, ElementType::kF32);
    build_float_step(site.lowering, std::move(made), FloatKernel::kVectors);
  });
}

}  // namespace tenon::onednn
