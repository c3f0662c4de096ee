// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exponential of attention's scores, which come in powers of 2.

#include "../level/vector_math.h"

namespace tenon::onednn::kernels::amx {

// 2^z for z <= 0 with a relative error of 2^-13.7, for what is rounded to bf16: the fraction by a
// polynomial on [0, 1), a minimax fit, the rest as an exponent. Under 2^-126, where masked scores
// are, it gives 0: an underflow would cost the CPU some 60 ns.
inline Vf short_exp2(Vf z) {
  const Vf f = _mm512_reduce_ps(z, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  Vf p = splat(7.802450656890869e-2F);
  p = fma(p, f, splat(2.260672003030777e-1F));
  p = fma(p, f, splat(6.958335041999817e-1F));
  p = fma(p, f, splat(9.999251961708069e-1F));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(z, splat(-126.0F), _CMP_NLT_UQ), p, z);
}

}  // namespace tenon::onednn::kernels::amx
