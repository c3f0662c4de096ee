// SPDX-License-Identifier: Apache-2.0
#pragma once
// GELU with the accuracy of f32.

#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

constexpr float kPhiStep = 0.1875F;
constexpr float kPhiEnd = 31.49F * kPhiStep;  // Phi is 1 in the piece behind it

// Polynomials of degree 4 of the normal distribution's Phi(a) - 1/2 in a - i kPhiStep, for
// |a - i kPhiStep| <= kPhiStep / 2: minimax, within 3e-9.
alignas(64) constexpr float kPhiPieces[5][32] = {
    {
        0.0F,        0.07436569F, 0.14616977F, 0.2131123F,  0.27337265F, 0.32574928F, 0.36970547F,
        0.40532425F, 0.4331928F,  0.45424637F, 0.46960363F, 0.48041993F, 0.48777553F, 0.4926054F,
        0.49566755F, 0.4975421F,  0.4986501F,  0.49928245F, 0.49963093F, 0.49981633F, 0.49991158F,
        0.49995884F, 0.49998146F, 0.49999192F, 0.4999966F,  0.49999863F, 0.49999946F, 0.4999998F,
        0.4999999F,  0.49999997F, 0.5F,        0.5F,
    },
    {
        0.39894223F,    0.3919907F,     0.37185493F,    0.3405675F,     0.30113745F,
        0.257074F,      0.21187678F,    0.16859333F,    0.12951773F,    0.09606162F,
        0.06878635F,    0.047553934F,   0.031739663F,   0.020452663F,   0.012724158F,
        0.007642578F,   0.004431822F,   0.0024811681F,  0.0013411015F,  0.0006998396F,
        0.0003525874F,  0.00017150091F, 8.053735e-05F,  3.6514004e-05F, 1.5982796e-05F,
        6.7542496e-06F, 2.755706e-06F,  1.0854739e-06F, 4.1278318e-07F, 1.5156014e-07F,
        5.3723465e-08F, 0.0F,
    },
    {
        5.547733e-06F,   -0.036749054F,   -0.06972267F,    -0.09578444F,
        -0.11292637F,    -0.12050325F,    -0.11918053F,    -0.11063926F,
        -0.09713824F,    -0.08105197F,    -0.06448722F,    -0.04904003F,
        -0.03570717F,    -0.024926735F,   -0.016700508F,   -0.010747418F,
        -0.0066477656F,  -0.0039543863F,  -0.002263126F,   -0.0012466009F,
        -0.00066110876F, -0.00033764692F, -0.00016611104F, -7.8734905e-05F,
        -3.596218e-05F,  -1.5830734e-05F, -6.7172077e-06F, -2.747687e-06F,
        -1.0843415e-06F, -4.1206977e-07F, -1.5110359e-07F, 0.0F,
    },
    {
        -0.06666923F,   -0.06293497F,   -0.053186487F,   -0.03876421F,
        -0.021959392F,  -0.005223585F,  0.009322009F,    0.020238476F,
        0.026918417F,   0.029528907F,   0.028803973F,    0.025770027F,
        0.021485297F,   0.016849095F,   0.01250285F,     0.008814588F,
        0.0059212944F,  0.003798296F,   0.0023304196F,   0.0013693452F,
        0.00077139F,    0.00041694936F, 0.00021639084F,  0.00010789358F,
        5.1709434e-05F, 2.3831119e-05F, 1.05644085e-05F, 4.5066004e-06F,
        1.8522517e-06F, 7.3144463e-07F, 2.7842424e-07F,  0.0F,
    },
    {
        0.002273497F,    0.009056677F,    0.016573131F,    0.021371834F,
        0.02289401F,     0.02126399F,     0.017205248F,    0.011773512F,
        0.006081209F,    0.0010475216F,   -0.0027494836F,  -0.005104529F,
        -0.006121957F,   -0.0061002257F,  -0.005409995F,   -0.004396906F,
        -0.0033255785F,  -0.0023623065F,  -0.0015853939F,  -0.0010093899F,
        -0.00061149645F, -0.0003532556F,  -0.0001949521F,  -0.00010291781F,
        -5.2023148e-05F, -2.5205978e-05F, -1.1723073e-05F, -5.230727e-06F,
        -2.1597662e-06F, -9.228432e-07F,  -3.6522465e-07F, 0.0F,
    },
};

// y Phi(y), within 1.2e-7 max(1, |y|). Where a register holds 16 lanes, tables take half of the
// time of erf.
static inline Vf erf_gelu(Vf y) {
  if constexpr (kLanes < 16) {
    return y * (erf(y * 0.70710678118654752F) * 0.5F + 0.5F);
  } else {
    constexpr float kInteger = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded
    const Vf size = min_fast(absolute(y), splat(kPhiEnd));
    const Vf shifted = fma(size, splat(1.0F / kPhiStep), splat(kInteger));
    const Vf at = fma(shifted - kInteger, splat(-kPhiStep), size);
    const auto piece = reinterpret_cast<Vi>(shifted);
    Vf phi = pick_of_32(kPhiPieces[4], piece);
#pragma GCC unroll 4
    for (int power = 3; power >= 0; --power)
      phi = fma(phi, at, pick_of_32(kPhiPieces[power], piece));
    return y * (copy_sign(phi, y) + 0.5F);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
