// SPDX-License-Identifier: Apache-2.0
// One row of queries with a cache; contract in ../cached_attention.h.

#include "../cached_attention_args.h"
#include "elements.h"
#include "level.h"
#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

// Several at once, so that sums do not wait for each other.
template <int heads, int keys>
void score(const CachedAttentionPiece& p, int64_t head, int64_t key) {
  const float* const q = p.q + head * p.depth;
  const float* const k = p.k + key * p.depth;
  Vf sums[heads][keys] = {};
  each_register(p.depth, [&](int64_t i, int64_t lanes) {
    Vf columns[keys];
    for (int c = 0; c < keys; ++c)
      columns[c] = load_some(k + c * p.depth + i, lanes);
    for (int h = 0; h < heads; ++h) {
      const Vf row = load_some(q + h * p.depth + i, lanes);
      for (int c = 0; c < keys; ++c)
        sums[h][c] = fma(row, columns[c], sums[h][c]);
    }
  });
  for (int h = 0; h < heads; ++h)
    for (int c = 0; c < keys; ++c)
      p.weights[(head + h) * p.weights_pitch + key + c] = sum_lanes(sums[h][c]);
}

template <int heads>
void score_heads(const CachedAttentionPiece& p, int64_t head) {
  constexpr int kKeys = 4;
  int64_t key = 0;
  for (; key + kKeys <= p.keys; key += kKeys)
    score<heads, kKeys>(p, head, key);
  for (; key < p.keys; ++key)
    score<heads, 1>(p, head, key);
}

// Scores become exponentials, without those behind the last key; returns their sum.
float exponentials(const CachedAttentionPiece& p, int64_t head) {
  float* const scores = p.weights + head * p.weights_pitch;
  const float cap = p.softcap;
  Vf top = splat(-kInfinity);
  for (int64_t i = 0; i < p.keys; i += kLanes) {
    Vf x = load(scores + i);
    if (cap != 0.0F) x = tanh(x / cap) * cap;
    if (p.keys - i < kLanes) x = keep_part(x, p.keys - i, -kInfinity);
    store(scores + i, x);
    top = max_nan(x, top);
  }
  if (p.sinks != nullptr) top = max_nan(top, splat(p.sinks[head]));
  const float most = max_lanes(top);
  Vf sum = {};
  for (int64_t i = 0; i < p.keys; i += kLanes) {
    const Vf e = exp_nonpositive(load(scores + i) - most);
    store(scores + i, e);
    sum += e;
  }
  const Vf sink = p.sinks == nullptr ? Vf{} : exp_nonpositive(splat(p.sinks[head] - most));
  return sum_lanes(sum) + sink[0];
}

// The context of columns [column, column + registers * kLanes), the last register in part.
template <int heads, int registers>
void add_values(
    const CachedAttentionPiece& p, int64_t head, int64_t column, int64_t lanes, const float* of) {
  const float* const weights = p.weights + head * p.weights_pitch;
  Vf sums[heads][registers] = {};
  for (int64_t key = 0; key < p.keys; ++key) {
    const float* const v = p.v + key * p.depth + column;
    Vf values[registers];
    for (int r = 0; r < registers; ++r)
      values[r] = load_some(v + r * kLanes, r + 1 < registers ? kLanes : lanes);
    for (int h = 0; h < heads; ++h) {
      const Vf weight = splat(weights[h * p.weights_pitch + key]);
      for (int r = 0; r < registers; ++r)
        sums[h][r] = fma(weight, values[r], sums[h][r]);
    }
  }
  float* const dst = p.dst + head * p.depth + column;
  for (int h = 0; h < heads; ++h)
    for (int r = 0; r < registers; ++r)
      store_some(dst + h * p.depth + r * kLanes, sums[h][r] * of[h],
                 r + 1 < registers ? kLanes : lanes);
}

template <int heads>
void attend(const CachedAttentionPiece& p, int64_t head) {
  constexpr int kRegisters = 4 / heads > 2 ? 4 / heads : 2;
  score_heads<heads>(p, head);
  float factors[heads];
  for (int h = 0; h < heads; ++h)
    factors[h] = 1.0F / exponentials(p, head + h);
  int64_t column = 0;
  for (; column + kRegisters * kLanes <= p.depth; column += kRegisters * kLanes)
    add_values<heads, kRegisters>(p, head, column, kLanes, factors);
  for (; column < p.depth; column += kLanes)
    add_values<heads, 1>(p, head, column, p.depth - column < kLanes ? p.depth - column : kLanes,
                         factors);
}

}  // namespace

void cached_attention_row(const CachedAttentionPiece& piece) {
  constexpr int kHeads = 2;
  int64_t head = 0;
  for (; head + kHeads <= piece.heads; head += kHeads)
    attend<kHeads>(piece, head);
  if (head < piece.heads) attend<1>(piece, head);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
