// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit codes with sparse weights, four k at a time; contract in ../sparse_product.h.
// They need VNNI, which is part of no level: the caller asks (multiplies_sparse_codes).

#include "elements.h"
#include "epilogue.h"
#include "level.h"

#if defined(__AVX512F__)
#pragma GCC target("avx512vnni")
#elif defined(__AVX2__)
#pragma GCC target("avxvnni")
#endif

#include "sparse_block.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

#if defined(__AVX2__)
struct Code {
  using Sum = Vi;
  using Left = Vi;
  TENON_INLINE static Vi splat(const void* numbers, int64_t at) {
    return splat_i(static_cast<const int32_t*>(numbers)[at]);
  }
  TENON_INLINE static Vi left(const void* rows, int64_t at) {
    return load_vector<Vi>(static_cast<const int32_t*>(rows) + at);
  }
  TENON_INLINE static Vi right(const void* numbers, int64_t at) {
    return load_vector<Vi>(static_cast<const int32_t*>(numbers) + at);
  }
  TENON_INLINE static Vi add(Vi sum, Vi left, Vi w) {
#if defined(__AVX512F__)
    return reinterpret_cast<Vi>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum),
                                                    reinterpret_cast<__m512i>(left),
                                                    reinterpret_cast<__m512i>(w)));
#else
    return reinterpret_cast<Vi>(_mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(sum),
                                                        reinterpret_cast<__m256i>(left),
                                                        reinterpret_cast<__m256i>(w)));
#endif
  }
  TENON_INLINE static Vi add_splat(Vi sum, const void* rows, int64_t at, Vi w) {
    return add(sum, splat_i(static_cast<const int32_t*>(rows)[at]), w);
  }
  // Less what the zero point of the rows adds.
  TENON_INLINE static void store(float* to, Vi sum, const SparseBlock& block, int64_t column) {
    sum -= splat_i(block.zero * block.right.sums[column]);
    kernels::TENON_LEVEL::store(to, to_float(sum));
  }
  TENON_INLINE static void store_row(float* to, Vi sum, const SparseBlock& block, int64_t column) {
    const int32_t* const sums = block.right.sums + block.panel * kSparsePanel + column;
    sum -= load_vector<Vi>(sums) * block.zero;
    kernels::TENON_LEVEL::store(to, to_float(sum));
  }
};
#endif

}  // namespace

void sparse_codes([[maybe_unused]] const SparseBlock& block) {
#if defined(__AVX2__)
  multiply_block<Code>(block);
#endif
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
