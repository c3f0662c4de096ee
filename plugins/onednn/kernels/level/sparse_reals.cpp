// SPDX-License-Identifier: Apache-2.0
// Products of reals with sparse weights; contract in ../sparse_product.h.

#include "level.h"
#include "sparse_block.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

struct Real {
  using Sum = Vf;
  TENON_INLINE static Vf splat(const void* numbers, int64_t at) {
    return kernels::TENON_LEVEL::splat(static_cast<const float*>(numbers)[at]);
  }
  TENON_INLINE static Vf lanes(const void* numbers, int64_t at) {
    return load(static_cast<const float*>(numbers) + at);
  }
  TENON_INLINE static Vf add(Vf sum, Vf a, Vf b) { return fma(a, b, sum); }
  TENON_INLINE static Vf real(Vf sum, const SparseBlock&, int64_t) { return sum; }
};

}  // namespace

void sparse_reals(const SparseBlock& block) {
  multiply_block<Real>(block);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
