// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention of a few new rows with a cache of keys and values, as text generation repeats it: norms
// and rotary positions of queries and keys (Su et al. 2021), the new rows' place in the cache,
// scores, softmax and context, in f32. Heads of queries share keys and values (Ainslie et al.
// 2023).
//
// A row sees the keys up to its own, or of its call where it is not causal, and of these the last
// `window`. Nothing else of the cache is looked at. Sums of `depth` or `keys` terms are added by
// lanes. Results do not depend on the number of threads.

#include "cached_attention_args.h"
#include "context.h"

namespace tenon::onednn::kernels {

// q, k, v: [batch, rows, ...], of whose last axis a token's heads lie one behind the other.
// past_k, past_v: [batch, shared, room, depth]; present_k, present_v: [batch, shared, stored,
// depth], which get the past, zeros up to `stored`, and the new rows, rounded to their type. dst:
// [batch, rows, heads * depth]. No operand overlaps another.
struct CachedAttentionArgs {
  int64_t batch = 0, rows = 0, heads = 0, shared = 0, depth = 0;  // shared: heads of keys
  int64_t room = 0, stored = 0;
  int64_t q_pitch = 0, k_pitch = 0, v_pitch = 0;  // from one token to the next
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  ElementType cache = ElementType::kF32;  // of past, present, cosines and sines; or f16, bf16
  const void *past_k = nullptr, *past_v = nullptr;  // read where room > 0
  void *present_k = nullptr, *present_v = nullptr;
  float* dst = nullptr;
  // Where the last new row of each sequence stands among its keys: [batch]. A call of `total` rows
  // in all begins its texts: its rows come first.
  const int32_t* last = nullptr;
  int64_t total = 0;
  const void *cosines = nullptr, *sines = nullptr;  // [positions, angles]; null: no rotation
  int64_t positions = 0, angles = 0;
  bool is_interleaved = false;           // pairs are neighbours, else half of 2 * angles apart
  const int64_t* position_of = nullptr;  // [batch, rows]; null: the places among the keys
  const float *q_norm = nullptr, *k_norm = nullptr;  // [depth]: RMSNorm's; null: none
  float epsilon = 0;
  const float* sinks =
      nullptr;  // [heads]: the score of a further key, whose value is 0; null: none
  float scale = 1, softcap = 0;
  bool is_causal = true;
  int64_t window = -1;  // -1: all
};

// What is wrong with places or positions, before anything is written; nullptr: nothing.
const char* cached_attention(const Context& context, const CachedAttentionArgs& args);

}  // namespace tenon::onednn::kernels
