// SPDX-License-Identifier: Apache-2.0
// Products of f32 numbers with constant weights on vectors.

#include "float_product.hpp"

#include <algorithm>
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

bool has_elementary_function(const GemmEpilogue& finish) {
  using Kind = kernels::EpilogueOp::Kind;
  return std::any_of(finish.ops.begin(), finish.ops.end(), [](const kernels::EpilogueOp& op) {
    return op.kind == Kind::kSwish || op.kind == Kind::kSigmoid || op.kind == Kind::kTanh ||
           op.kind == Kind::kGeluErf || op.kind == Kind::kGeluTanh;
  });
}

// Empty: it is faster than oneDNN.
std::string why_slower(const FloatStep& made) {
  if (made.step.args.m > most_rows())
    return "more than " + std::to_string(most_rows()) + " rows, for which oneDNN is faster";
  // A GELU takes a tenth of the time of MiniLM's products (bench_onednn_float); oneDNN's is
  // shorter.
  const bool has_slow_ending =
      best_level() == kernels::Level::kAvx512 && has_elementary_function(made.finish);
  return has_slow_ending ? "oneDNN is faster at the activation behind it" : "";
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
