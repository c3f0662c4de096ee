// SPDX-License-Identifier: Apache-2.0
// Products of reals with sparse weights; contract in ../sparse_product.h.

#include "level.h"
#include "sparse_block.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

struct Real {
  using Sum = Vf;
  using Left = Vf;
  TENON_INLINE static Vf splat(const void* numbers, int64_t at) {
    return kernels::TENON_LEVEL::splat(static_cast<const float*>(numbers)[at]);
  }
  TENON_INLINE static Vf left(const void* rows, int64_t at) {
    return load(static_cast<const float*>(rows) + at);
  }
  TENON_INLINE static Vf right(const void* numbers, int64_t at) {
    return load(static_cast<const float*>(numbers) + at);
  }
  TENON_INLINE static Vf add(Vf sum, Vf left, Vf w) { return fma(left, w, sum); }
  TENON_INLINE static Vf add_splat(Vf sum, const void* rows, int64_t at, Vf w) {
    return fma(w, kernels::TENON_LEVEL::splat(static_cast<const float*>(rows)[at]), sum);
  }
  TENON_INLINE static void store(float* to, Vf sum, const SparseBlock&, int64_t) {
    kernels::TENON_LEVEL::store(to, sum);
  }
  TENON_INLINE static void store_row(float* to, Vf sum, const SparseBlock&, int64_t) {
    kernels::TENON_LEVEL::store(to, sum);
  }
};

}  // namespace

void sparse_reals(const SparseBlock& block) {
  multiply_block<Real>(block);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
