// SPDX-License-Identifier: Apache-2.0
// Normalization by the statistics of a batch, one piece of rows at a time; contract in
// ../batch_norm.h, of the arguments in ../batch_norm_args.h.

#include "elements.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

// Calls f(element, its place in the period, lanes that count) for each register.
template <class F>
void each_register(const BatchNormPiece& piece, const F& f) {
  for (int64_t begin = 0; begin < piece.n; begin += piece.period) {
    const int64_t n = piece.n - begin < piece.period ? piece.n - begin : piece.period;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      f(begin + i, i, kLanes);
    if (i < n) f(begin + i, i, static_cast<int>(n - i));
  }
}
Vf first_lanes(Vf v, int count) {
  if (count == kLanes) return v;
  float lanes[kLanes];
  store(lanes, v);
  return load_part(lanes, count, 0.0F);
}

void clear(const BatchNormPiece& piece) {
  for (int64_t i = 0; i < piece.period; ++i)
    piece.first[i] = piece.second[i] = 0.0F;
}
void add(float* sum, Vf v) {
  store(sum, load(sum) + v);
}
// The sums of a channel, at its first place.
void fold(const BatchNormPiece& piece, float* sums) {
  for (int64_t begin = piece.channels; begin < piece.period; begin += piece.channels)
    for (int64_t c = 0; c < piece.channels; ++c)
      sums[c] += sums[begin + c];
}

template <class T>
void moments(const BatchNormPiece& piece) {
  const T* x = static_cast<const T*>(piece.x);
  clear(piece);
  each_register(piece, [&](int64_t at, int64_t i, int count) {
    add(piece.first + i, load_some(x + at, count));
  });
  fold(piece, piece.first);
  const float rows = static_cast<float>(piece.n / piece.channels);
  for (int64_t c = 0; c < piece.channels; ++c)
    piece.first[c] /= rows;
  for (int64_t i = piece.channels; i < piece.period; ++i)
    piece.first[i] = piece.first[i - piece.channels];
  each_register(piece, [&](int64_t at, int64_t i, int count) {
    const Vf apart = first_lanes(load_some(x + at, count) - load(piece.first + i), count);
    add(piece.second + i, apart * apart);
  });
  fold(piece, piece.second);
}

template <class T>
void scale(const BatchNormPiece& piece) {
  const T* x = static_cast<const T*>(piece.x);
  T* y = static_cast<T*>(piece.out);
  each_register(piece, [&](int64_t at, int64_t i, int count) {
    Vf v = fma(load_some(x + at, count), load(piece.factor + i), load(piece.shift + i));
    if (piece.has_relu) v = max_nan(v, Vf{});
    store_some(y + at, v, count);
  });
}

// dy, where y was positive.
template <class T>
Vf gradient_of(const BatchNormPiece& piece, const T* dy, Vf x, int64_t i, int count) {
  const Vf d = load_some(dy, count);
  if (!piece.has_relu) return d;
  return fma(x, load(piece.factor + i), load(piece.shift + i)) > 0.0F ? d : Vf{};
}

template <class T>
void grad_sums(const BatchNormPiece& piece) {
  const T *x = static_cast<const T*>(piece.x), *dy = static_cast<const T*>(piece.dy);
  clear(piece);
  each_register(piece, [&](int64_t at, int64_t i, int count) {
    const Vf v = load_some(x + at, count);
    const Vf d = gradient_of(piece, dy + at, v, i, count);
    add(piece.first + i, d);
    add(piece.second + i, d * (v - load(piece.mean + i)));
  });
  fold(piece, piece.first);
  fold(piece, piece.second);
}

template <class T>
void grad_apply(const BatchNormPiece& piece) {
  const T *x = static_cast<const T*>(piece.x), *dy = static_cast<const T*>(piece.dy);
  T* dx = static_cast<T*>(piece.out);
  each_register(piece, [&](int64_t at, int64_t i, int count) {
    const Vf v = load_some(x + at, count);
    const Vf d = gradient_of(piece, dy + at, v, i, count);
    const Vf mean_part =
        fma(v - load(piece.mean + i), load(piece.slope + i), load(piece.constant + i));
    store_some(dx + at, fma(d, load(piece.factor + i), -mean_part), count);
  });
}

}  // namespace

void batch_moments(const BatchNormPiece& piece) {
  piece.type == ElementType::kBf16 ? moments<Bf16>(piece) : moments<float>(piece);
}
void batch_scale(const BatchNormPiece& piece) {
  piece.type == ElementType::kBf16 ? scale<Bf16>(piece) : scale<float>(piece);
}
void batch_grad_sums(const BatchNormPiece& piece) {
  piece.type == ElementType::kBf16 ? grad_sums<Bf16>(piece) : grad_sums<float>(piece);
}
void batch_grad_apply(const BatchNormPiece& piece) {
  piece.type == ElementType::kBf16 ? grad_apply<Bf16>(piece) : grad_apply<float>(piece);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
