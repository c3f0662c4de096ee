// SPDX-License-Identifier: Apache-2.0
#pragma once
// GELU for results whose steps are coarse, in few floating-point operations: these share a unit
// with the products on tiles, permutations do not.

#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

constexpr float kGeluStep = 0.34F;
constexpr float kGeluEnd = 15.49F * kGeluStep;  // Phi is 0 or 1 in the pieces behind it

// Cubic polynomials of the normal distribution's Phi(y), each minimax in |y| times its error, for
// |y - k kGeluStep| <= kGeluStep / 2; that of k is number k modulo 32.
alignas(64) constexpr float kGeluPieces[4][32] = {
    {
        0.5F,
        0.499843687F,
        0.495745718F,
        0.477233469F,
        0.443480074F,
        0.419965565F,
        0.44397527F,
        0.530269563F,
        0.657253683F,
        0.785343826F,
        0.884592175F,
        0.946590722F,
        0.978651226F,
        0.992604196F,
        0.997772574F,
        1,
        0,
        0,
        0.00222744234F,
        0.00739578484F,
        0.0213487651F,
        0.0534092635F,
        0.115407839F,
        0.214656159F,
        0.342746317F,
        0.469730437F,
        0.55602473F,
        0.580034435F,
        0.556519926F,
        0.522766531F,
        0.504254282F,
        0.500156343F,
    },
    {
        0.398938715F,
        0.400868446F,
        0.423490912F,
        0.487967551F,
        0.573519468F,
        0.620979011F,
        0.583765149F,
        0.46724689F,
        0.317785203F,
        0.184407189F,
        0.0917995647F,
        0.039407745F,
        0.0146544306F,
        0.00473871874F,
        0.00133671844F,
        0,
        0,
        0,
        0.00133671844F,
        0.00473871874F,
        0.0146544306F,
        0.039407745F,
        0.0917995647F,
        0.184407189F,
        0.317785203F,
        0.46724689F,
        0.583765149F,
        0.620979011F,
        0.573519468F,
        0.487967551F,
        0.423490912F,
        0.400868446F,
    },
    {
        2.34114359e-15F,
        -0.00801811181F,
        -0.0502247773F,
        -0.125550881F,
        -0.198068321F,
        -0.230037436F,
        -0.210809991F,
        -0.158318833F,
        -0.0996368453F,
        -0.0533159636F,
        -0.0244993847F,
        -0.00973624177F,
        -0.00336387381F,
        -0.00101444311F,
        -0.000267854222F,
        0,
        0,
        0,
        0.000267854222F,
        0.00101444311F,
        0.00336387381F,
        0.00973624177F,
        0.0244993847F,
        0.0533159636F,
        0.0996368453F,
        0.158318833F,
        0.210809991F,
        0.230037436F,
        0.198068321F,
        0.125550881F,
        0.0502247773F,
        0.00801811181F,
    },
    {
        -0.0660906062F,
        -0.054487478F,
        -0.027828183F,
        0.00169291103F,
        0.0222483017F,
        0.0294347145F,
        0.0261230655F,
        0.0182333216F,
        0.0105477991F,
        0.00518253306F,
        0.00219228119F,
        0.000805125048F,
        0.000258146058F,
        7.25445643e-05F,
        1.79195886e-05F,
        0,
        0,
        0,
        1.79195886e-05F,
        7.25445643e-05F,
        0.000258146058F,
        0.000805125048F,
        0.00219228119F,
        0.00518253306F,
        0.0105477991F,
        0.0182333216F,
        0.0261230655F,
        0.0294347145F,
        0.0222483017F,
        0.00169291103F,
        -0.027828183F,
        -0.054487478F,
    },
};

// y Phi(y), within 2.5e-6 everywhere.
static inline Vf table_gelu(Vf y) {
  constexpr float kInteger = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded
  const Vf inside = clamp(y, -kGeluEnd, kGeluEnd);
  const Vf shifted = fma(inside, splat(1.0F / kGeluStep), splat(kInteger));
  const auto piece = reinterpret_cast<Vi>(shifted);
  Vf phi = pick_of_32(kGeluPieces[3], piece);
#pragma GCC unroll 3
  for (int power = 2; power >= 0; --power)
    phi = fma(phi, inside, pick_of_32(kGeluPieces[power], piece));
  return y * phi;
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
