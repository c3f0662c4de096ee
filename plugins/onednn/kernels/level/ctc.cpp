// SPDX-License-Identifier: Apache-2.0
// Sums of exponentials of rows; contract in ../ctc_args.h.

#include "elements.h"
#include "level.h"
#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr float kInfinity = __builtin_inff();

// NaN is not the largest of anything; it comes back in the sum.
float largest_of(const float* x, int64_t n) {
  Vf top = splat(-kInfinity);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    top = max_fast(load(x + i), top);
  if (i < n) top = max_fast(load_part(x + i, n - i, -kInfinity), top);
  return max_lanes(top);
}

template <class Each>
float sum_of_exponentials(const float* x, int64_t n, float largest, const Each& each) {
  Vf sum = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vf e = exp_nonpositive(load(x + i) - largest);
    each(i, e, kLanes);
    sum += e;
  }
  float total = sum_lanes(sum);
  if (i == n) return total;
  const Vf e = exp_nonpositive(load_some(x + i, n - i) - largest);
  each(i, e, n - i);
  for (int64_t k = 0; k < n - i; ++k)
    total += e[k];
  return total;
}

void scale_row(float* x, int64_t n, float factor) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(x + i, load(x + i) * factor);
  if (i < n) store_some(x + i, load_some(x + i, n - i) * factor, n - i);
}

}  // namespace

void softmax_sums(const SoftmaxSums& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.src + row * args.n;
    const float largest = largest_of(x, args.n);
    args.largest[row] = largest;
    if (args.softmax == nullptr) {
      args.sums[row] = sum_of_exponentials(x, args.n, largest, [](int64_t, Vf, int64_t) {});
      continue;
    }
    float* to = args.softmax + row * args.n;
    args.sums[row] = sum_of_exponentials(
        x, args.n, largest, [&](int64_t i, Vf v, int64_t count) { store_some(to + i, v, count); });
    scale_row(to, args.n, 1.0F / args.sums[row]);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
