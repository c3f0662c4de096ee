// SPDX-License-Identifier: Apache-2.0
#pragma once
// BatchNormalization by the statistics of the batch itself, and its gradient (Ioffe and Szegedy
// 2015, "Batch Normalization", algorithm 1 and section 3), for any number of channels: x is
// [rows, channels], dense, in f32 or bf16. Statistics are of f32, joined in f64. The variance is
// that of the whole batch (divided by rows).

#include "batch_norm_args.h"
#include "context.h"

namespace tenon::onednn::kernels {

struct BatchNorm {
  int64_t rows = 0, channels = 0;
  ElementType type = ElementType::kF32;  // of x, y and their gradients
  float epsilon = 0;
  bool has_relu = false;  // y = max(0, normalized)

  // Of the argument `scratch` of each function.
  int64_t scratch_bytes() const;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + shift. Writes mean and variance [channels]
// and affine [2, channels]: the factor and the summand of x. y may be x.
struct BatchNormForward {
  const void* x = nullptr;
  const float *scale = nullptr, *shift = nullptr;
  void* y = nullptr;
  float *mean = nullptr, *variance = nullptr, *affine = nullptr;
};
void batch_norm(const Context& context,
                const BatchNorm& norm,
                const BatchNormForward& of,
                void* scratch);
// Mean and variance alone.
void batch_statistics(const Context& context,
                      const BatchNorm& norm,
                      const void* x,
                      float* mean,
                      float* variance,
                      void* scratch);

// The gradients of x, scale and shift [channels], given that of y. affine: as the forward pass left
// it; only read with has_relu, to know which results were positive. dx may be dy.
struct BatchNormBackward {
  const void *x = nullptr, *dy = nullptr;
  const float *scale = nullptr, *mean = nullptr, *variance = nullptr, *affine = nullptr;
  void* dx = nullptr;
  float *dscale = nullptr, *dshift = nullptr;
};
void batch_norm_grad(const Context& context,
                     const BatchNorm& norm,
                     const BatchNormBackward& of,
                     void* scratch);

}  // namespace tenon::onednn::kernels
