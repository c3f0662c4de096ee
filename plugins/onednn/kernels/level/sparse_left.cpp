// SPDX-License-Identifier: Apache-2.0
// Rows as products with sparse weights read them; contract in ../sparse_product.h.

#include "elements.h"
#include "level.h"
#include "transpose.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kRows = static_cast<int>(kSparseGroup);

// Some steps of one row: registers of which each lane is a step.
Vf take(const SparseLeft& left, int row, int64_t step, int64_t n) {
  const char* const from = left.rows[row];
  if (left.type == ElementType::kF32) {
    const float* const p = reinterpret_cast<const float*>(from) + step;
    return n >= kLanes ? load(p) : load_lanes_part(p, n);
  }
  if (left.type == ElementType::kBf16) {
    const Bf16* const p = reinterpret_cast<const Bf16*>(from) + step;
    return n >= kLanes ? load_lanes(p) : load_lanes_part(p, n);
  }
  const int64_t bytes = left.k - step * kSparseFour;
  Vi quantized = {};
  if (bytes >= kVectorBytes)
    quantized = load_vector<Vi>(from + step * kSparseFour);
  else
    std::memcpy(&quantized, from + step * kSparseFour, static_cast<size_t>(bytes));
  if (left.type == ElementType::kS8) quantized ^= static_cast<int32_t>(0x80808080U);
  return from_bits(quantized);
}

}  // namespace

void sparse_left(const SparseLeft& left) {
  const bool are_quantized = element_bytes(left.type) == 1;
  const int64_t steps = are_quantized ? (left.k + kSparseFour - 1) / kSparseFour : left.k;
  auto* const to = static_cast<float*>(left.to);
  for (int64_t step = 0; step < steps; step += kLanes) {
    const int64_t n = steps - step < kLanes ? steps - step : kLanes;
    for (int first = 0; first < kRows; first += kLanes) {
      Vf lanes[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        lanes[i] = first + i < left.n_rows ? take(left, first + i, step, n) : Vf{};
      transpose(lanes);
      for (int64_t i = 0; i < n; ++i)
        store(to + (step + i) * left.stride + first, lanes[i]);
    }
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
