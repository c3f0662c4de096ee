// SPDX-License-Identifier: Apache-2.0
#include "cpu.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/context.h"
#include "kernels/tile_product.h"

namespace tenon::onednn {
namespace {

// oneDNN's sets of instructions are bits: a larger set contains the smaller ones.
bool has(dnnl::cpu_isa wanted) {
  static const auto kHere = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto bits = static_cast<unsigned>(wanted);
  return (kHere & bits) == bits;
}

}  // namespace

kernels::Level best_level() {
  return kernels::best_level();
}

bool adds_int8_exactly() {
  return has(dnnl::cpu_isa::avx512_core_vnni);
}

bool computes_in_tiles() {
  return has(dnnl::cpu_isa::avx512_core_amx) && kernels::has_tiles();
}

bool computes_in_bf16() {
  return has(dnnl::cpu_isa::avx512_core);
}

std::string why_not_bf16() {
  return computes_in_bf16() ? "" : "this CPU has no bf16 products (they need AVX-512)";
}

}  // namespace tenon::onednn
