// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit quantized values with sparse weights, four k at a time; contract in
// ../sparse_product.h. They need VNNI, which is part of no level: the caller asks
// (multiplies_sparse_int8).

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
struct Int8 {
  using Sum = Vi;
  TENON_INLINE static Vi splat(const void* quantized, int64_t at) {
    return splat_i(static_cast<const int32_t*>(quantized)[at]);
  }
  TENON_INLINE static Vi lanes(const void* quantized, int64_t at) {
    return load_vector<Vi>(static_cast<const int32_t*>(quantized) + at);
  }
  TENON_INLINE static Vi add(Vi sum, Vi a, Vi b) {
#if defined(__AVX512F__)
    return reinterpret_cast<Vi>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum),
                                                    reinterpret_cast<__m512i>(a),
                                                    reinterpret_cast<__m512i>(b)));
#else
    return reinterpret_cast<Vi>(_mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(sum),
                                                        reinterpret_cast<__m256i>(a),
                                                        reinterpret_cast<__m256i>(b)));
#endif
  }
  // Of columns from `column` on: less what the zero point of the rows adds.
  TENON_INLINE static Vf real(Vf sum, const SparseBlock& block, int64_t column) {
    return to_float(bits(sum) - load_vector<Vi>(block.right.sums + column) * block.zero);
  }
};
#endif

}  // namespace

void sparse_int8([[maybe_unused]] const SparseBlock& block) {
#if defined(__AVX2__)
  multiply_block<Int8>(block);
#endif
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
