// SPDX-License-Identifier: Apache-2.0
// One vectorised loop over a tile per pointwise instruction.

#include "tenon/expr.h"

#include "level.h"
#include "vector_math.h"
#include "vector_math_f64.h"

// C's functions for the rare instructions; declared here because <cmath> defines inline overloads.
extern "C" {
float asinf(float);
float acosf(float);
float atanf(float);
float sinhf(float);
float coshf(float);
float asinhf(float);
float acoshf(float);
float atanhf(float);
float atan2f(float, float);
float fmodf(float, float);
float tanf(float);
}

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

Vf truth(Vi mask) {
  return from_bits(mask & 0x3f800000);
}

template <class F>
inline void each_pair(float* dst,
                      PointwiseOperand a,
                      PointwiseOperand b,
                      PointwiseOperand c,
                      int64_t n,
                      const F& apply) {
  int64_t step_a = a.step * kLanes;
  int64_t step_b = b.step * kLanes;
  int64_t step_c = c.step * kLanes;
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    Vf a0 = load(a.data + i * step_a);
    Vf b0 = load(b.data + i * step_b);
    Vf c0 = load(c.data + i * step_c);
    Vf a1 = load(a.data + (i + 1) * step_a);
    Vf b1 = load(b.data + (i + 1) * step_b);
    Vf c1 = load(c.data + (i + 1) * step_c);
    Vf y0 = apply(a0, b0, c0);
    Vf y1 = apply(a1, b1, c1);
    store(dst + i * kLanes, y0);
    store(dst + (i + 1) * kLanes, y1);
  }
  if (i < n) {
    Vf y = apply(load(a.data + i * step_a), load(b.data + i * step_b), load(c.data + i * step_c));
    store(dst + i * kLanes, y);
  }
}

template <uint32_t op>
void run(float* dst, PointwiseOperand pa, PointwiseOperand pb, PointwiseOperand pc, int64_t n);

// Two registers in one step, loads first: the compiler can then interleave their instructions, and
// the CPU's scheduler, which holds about two iterations of exp, sees two chains at a time.
#define TENON_POINTWISE(opcode, expression)                                                   \
  template <>                                                                                 \
  void run<opcode>(float* dst, PointwiseOperand pa, PointwiseOperand pb, PointwiseOperand pc, \
                   int64_t n) {                                                               \
    auto apply = [](Vf a, [[maybe_unused]] Vf b, [[maybe_unused]] Vf c) -> Vf {               \
      return expression;                                                                      \
    };                                                                                        \
    each_pair(dst, pa, pb, pc, n, apply);                                                     \
  }
#include "pointwise_ops.def"
#undef TENON_POINTWISE

// In f64, half a register at a time.
template <Vd (*function)(Vd, Vd)>
void run_f64(float* dst, PointwiseOperand a, PointwiseOperand b, PointwiseOperand, int64_t n) {
  for (int64_t i = 0; i < 2 * n; ++i) {
    int64_t at = i * kHalfLanes;
    Vd x = widen(a.data + (a.step != 0 ? at : 0));
    Vd y = widen(b.data + (b.step != 0 ? at : 0));
    narrow(dst + at, function(x, y));
  }
}

template <float (*function)(float)>
void run_libm(float* dst, PointwiseOperand a, PointwiseOperand, PointwiseOperand, int64_t n) {
  for (int64_t i = 0; i < n * kLanes; ++i)
    dst[i] = function(a.data[a.step != 0 ? i : 0]);
}

template <float (*function)(float, float)>
void run_libm2(float* dst, PointwiseOperand a, PointwiseOperand b, PointwiseOperand, int64_t n) {
  for (int64_t i = 0; i < n * kLanes; ++i) {
    dst[i] = function(a.data[a.step != 0 ? i : 0], b.data[b.step != 0 ? i : 0]);
  }
}

// The remainder with the divisor's sign, as Python's and ONNX's Mod.
float floored_mod(float x, float y) {
  float r = fmodf(x, y);
  return r != 0.0F && (r < 0.0F) != (y < 0.0F) ? r + y : __builtin_copysignf(r, y);
}

constexpr PointwiseOps make_ops() {
  PointwiseOps ops = {};
#define TENON_POINTWISE(opcode, expression) ops.op[opcode] = run<opcode>;
#include "pointwise_ops.def"
#undef TENON_POINTWISE
  ops.op[TN_EXPR_POW] = run_f64<pow>;
  ops.op[TN_EXPR_SIN] = run_f64<sin>;
  ops.op[TN_EXPR_COS] = run_f64<cos>;
  ops.op[TN_EXPR_TAN] = run_libm<tanf>;
  ops.op[TN_EXPR_ASIN] = run_libm<asinf>;
  ops.op[TN_EXPR_ACOS] = run_libm<acosf>;
  ops.op[TN_EXPR_ATAN] = run_libm<atanf>;
  ops.op[TN_EXPR_SINH] = run_libm<sinhf>;
  ops.op[TN_EXPR_COSH] = run_libm<coshf>;
  ops.op[TN_EXPR_ASINH] = run_libm<asinhf>;
  ops.op[TN_EXPR_ACOSH] = run_libm<acoshf>;
  ops.op[TN_EXPR_ATANH] = run_libm<atanhf>;
  ops.op[TN_EXPR_ATAN2] = run_libm2<atan2f>;
  ops.op[TN_EXPR_FMOD] = run_libm2<fmodf>;
  ops.op[TN_EXPR_MOD] = run_libm2<floored_mod>;
  return ops;
}
constexpr PointwiseOps kOps = make_ops();

}  // namespace

void pointwise_ops(const PointwiseOps** ops, int64_t* lanes) {
  *ops = &kOps;
  *lanes = kLanes;
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
