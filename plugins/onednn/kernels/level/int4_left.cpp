// SPDX-License-Identifier: Apache-2.0
// A row of the left operand of products with 4-bit weights: in 8 bits with a scale a group, or as
// it is, beside the others of its block; contract in ../int4_product.h.

#include "elements.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr float kLeast = 0x1p-120F;  // under it 127 / x may be infinite

// Lanes [at, at + kLanes) of a row of k numbers; zeros behind them.
template <class T>
Vf numbers(const T* row, int64_t at, int64_t k) {
  if (at + kLanes <= k) return load_lanes(row + at);
  return at < k ? load_lanes_part(row + at, k - at) : Vf{};
}

// The bits of the largest magnitude: infinity, and NaN above it, are larger than all numbers.
template <class T>
int32_t largest(const T* row, int64_t first, int64_t last, int64_t k) {
  Vi most{};
  for (int64_t i = first; i < last; i += kLanes) {
    const Vi magnitude = bits(absolute(numbers(row, i, k)));
    most = magnitude > most ? magnitude : most;
  }
  int32_t found = 0;
  for (int i = 0; i < kLanes; ++i)
    found = most[i] > found ? most[i] : found;
  return found;
}

template <class T>
void quantize_group(const Int4Left& left, const T* row, int64_t g) {
  const int64_t r = left.row;
  const int64_t first = g * left.group, last = first + left.group;
  const float top = reinterpret<float>(largest(row, first, last, left.k));
  const bool is_finite = top <= 0x1.fffffep127F;
  const bool is_zero = is_finite && top < kLeast;
  const float inverse = is_zero || !is_finite ? 0.0F : 127.0F / top;
  // NaN makes NaN of all sums of the row.
  left.scales[g * left.rows + r] = is_finite ? (is_zero ? 0.0F : top / 127.0F) : __builtin_nanf("");
  Vi sum{};
  for (int64_t i = first; i < last; i += kLanes) {
    const Vf scaled = numbers(row, i, left.k) * inverse;
    const Vi quantized = is_finite ? round_to_int(scaled) : Vi{};
    sum += quantized;
    int8_t bytes[kLanes];
    narrow_8(bytes, quantized);
    for (int fours = 0; fours < kLanes / 4; ++fours)
      std::memcpy(left.quantized + ((i / 4 + fours) * left.rows + r) * 4, bytes + fours * 4, 4);
  }
  int32_t total = 0;
  for (int i = 0; i < kLanes; ++i)
    total += sum[i];
  left.sums[g * left.rows + r] = left.has_zeros ? -total : -kInt4Zero * total;
}

template <class T>
void take_row(const Int4Left& left) {
  const T* const row = static_cast<const T*>(left.src.data);
  if (left.quantized != nullptr) {
    for (int64_t g = 0; g < left.n_groups; ++g)
      quantize_group(left, row, g);
    return;
  }
  for (int64_t i = 0; i < left.group * left.n_groups; i += kLanes) {
    const Vf x = numbers(row, i, left.k);
    for (int lane = 0; lane < kLanes; ++lane)
      left.reals[(i + lane) * left.rows + left.row] = x[lane];
  }
}

}  // namespace

void int4_left(const Int4Left& left) {
  if (left.src.type == ElementType::kBf16)
    take_row<Bf16>(left);
  else
    take_row<float>(left);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
