// SPDX-License-Identifier: Apache-2.0
// Local response normalization over channels; contract in ../lrn.h.

#include "level.h"
#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

// s^-3/4, of the paper, by two square roots; any other power by its logarithm.
struct ThreeQuarters {
  explicit ThreeQuarters(float) {}
  Vf operator()(Vf s) const {
    Vf root = sqrt(s);
    return 1.0F / (root * sqrt(root));
  }
};
struct AnyPower {
  explicit AnyPower(float power) : beta(power) {}
  Vf operator()(Vf s) const { return exp(log(s) * -beta); }
  float beta;
};

// One vector of positions of one channel; n < kLanes: only these.
template <class Power>
void positions(const LrnArgs& args, const float* src, float* dst, int64_t channel, int64_t n) {
  int64_t first = channel - (args.size - 1) / 2, last = channel + args.size / 2;
  first = first < 0 ? 0 : first;
  last = last < args.channels ? last : args.channels - 1;
  auto read = [&](int64_t c) {
    const float* at = src + (c - channel) * args.inner;
    return n < kLanes ? load_part(at, n, 0.0F) : load(at);
  };
  Vf sum = splat(0.0F);
  for (int64_t c = first; c <= last; ++c) {
    Vf x = read(c);
    sum = fma(x, x, sum);
  }
  Vf y = read(channel) * Power(args.beta)(fma(sum, splat(args.alpha), splat(args.bias)));
  if (n < kLanes)
    store_part(dst, y, n);
  else
    store(dst, y);
}

// Channels side by side, with zeros before and behind them, so that every neighbour can be read.
constexpr int64_t kLongestPadded = 4096;

int64_t padded_size(const LrnArgs& args) {
  return args.channels + args.size + 2 * kLanes;
}

template <class Power>
void pixels(const LrnArgs& args, int64_t lo, int64_t hi) {
  alignas(64) float padded[kLongestPadded] = {};
  const int64_t before = (args.size - 1) / 2;
  for (int64_t pixel = lo; pixel < hi; ++pixel) {
    const float* src = args.src + pixel * args.channels;
    float* dst = args.dst + pixel * args.channels;
    for (int64_t c = 0; c < args.channels; ++c)
      padded[before + c] = src[c];
    for (int64_t c = 0; c < args.channels; c += kLanes) {
      // What was just stored is slow to read in vectors of another place.
      const bool is_inside = c >= before && c - before + args.size - 1 + kLanes <= args.channels;
      const float* first = is_inside ? src + c - before : padded + c;
      Vf sum = splat(0.0F);
      for (int64_t k = 0; k < args.size; ++k) {
        Vf x = load(first + k);
        sum = fma(x, x, sum);
      }
      Vf y = load(first + before) * Power(args.beta)(fma(sum, splat(args.alpha), splat(args.bias)));
      const int64_t left = args.channels - c;
      if (left < kLanes)
        store_part(dst + c, y, left);
      else
        store(dst + c, y);
    }
  }
}

template <class Power>
void rows(const LrnArgs& args, int64_t lo, int64_t hi) {
  if (args.inner == 1 && padded_size(args) <= kLongestPadded)
    return pixels<Power>(args, lo / args.channels, hi / args.channels);
  for (int64_t row = lo; row < hi; ++row) {
    const float* src = args.src + row * args.inner;
    float* dst = args.dst + row * args.inner;
    for (int64_t i = 0; i < args.inner; i += kLanes) {
      int64_t left = args.inner - i;
      positions<Power>(args, src + i, dst + i, row % args.channels, left < kLanes ? left : kLanes);
    }
  }
}

}  // namespace

void lrn_rows(const LrnArgs& args, int64_t lo, int64_t hi) {
  if (args.beta == 0.75F)
    rows<ThreeQuarters>(args, lo, hi);
  else
    rows<AnyPower>(args, lo, hi);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
