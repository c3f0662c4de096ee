// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first lanes of a register, for sets without masks; the contract is in simd.h.

#include <cstdint>
#include <cstring>

#include "vector_types.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

static inline Vf load_part(const float* p, int64_t n, float fill) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i)
    lanes[i] = i < n ? p[i] : fill;
  Vf v;
  std::memcpy(&v, lanes, sizeof v);
  return v;
}
static inline void store_part(float* p, Vf v, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    p[i] = v[i];
}
static inline Vf keep_part(Vf v, int64_t n, float fill) {
  for (int64_t i = n; i < kLanes; ++i)
    v[i] = fill;
  return v;
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
