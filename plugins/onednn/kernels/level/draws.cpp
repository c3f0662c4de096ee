// SPDX-License-Identifier: Apache-2.0
// Uniform numbers by Philox4x32-10; contract in ../draws.h. A lane of 64 bits is a block. Its words
// are in the low halves of four registers; what is in the high halves does not matter, since
// products read the low ones alone.

#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kChains = 4;  // registers of blocks, whose rounds do not wait for each other
constexpr int64_t kNumbers = int64_t{kChains} * kLanes;

struct Blocks {
  Vl words[4];
};

Vl high_half(Vl x) {
  return reinterpret_cast<Vl>(reinterpret_cast<HalfLanes<uint64_t>>(x) >> 32);
}

Blocks counters(const DrawArgs& args, uint64_t block) {
  Vl at;
  for (int i = 0; i < kHalfLanes; ++i)
    at[i] = static_cast<int64_t>(block) + i;
  const Vl stream = Vl{} + static_cast<int64_t>(args.of.stream);
  return {{at, high_half(at), stream, high_half(stream)}};
}

void round_of(Blocks& of, int64_t low_key, int64_t high_key) {
  const Vl a = multiply_low_halves(of.words[0], Vl{} + int64_t{0xD2511F53});
  const Vl b = multiply_low_halves(of.words[2], Vl{} + int64_t{0xCD9E8D57});
  of = {{high_half(b) ^ of.words[1] ^ low_key, b, high_half(a) ^ of.words[3] ^ high_key, a}};
}

// 53 bits of two words, times 2^-53: the upper 21 and the lower 32 stand behind the exponents of
// 2^84 and 2^52, which are then taken off.
HalfLanes<float> number(const Uniform& of, Vl high, Vl low) {
  constexpr int64_t kLowHalf = 0xffffffff, k52 = 0x4330000000000000, k84 = 0x4530000000000000;
  const Vl upper = (high & kLowHalf) >> 11;
  const Vl lower = (high << 21 | (low & kLowHalf) >> 11) & kLowHalf;
  const Vd whole = reinterpret_cast<Vd>(upper | k84) - (0x1p84 + 0x1p52);
  const Vd unit = (whole + reinterpret_cast<Vd>(lower | k52)) * 0x1p-53;
  return __builtin_convertvector(of.low + of.scale * unit, HalfLanes<float>);
}

// Two numbers of each lane, one behind the other.
Vf side_by_side(HalfLanes<float> first, HalfLanes<float> second) {
  using Words = HalfLanes<uint64_t>;
  const auto widened = [](HalfLanes<float> x) {
    return __builtin_convertvector(reinterpret<HalfLanes<uint32_t>>(x), Words);
  };
  return reinterpret<Vf>(widened(first) | widened(second) << 32);
}

void draw(const DrawArgs& args, uint64_t block, float* out) {
  Blocks chains[kChains];
  for (int i = 0; i < kChains; ++i)
    chains[i] = counters(args, block + static_cast<uint64_t>(i) * kHalfLanes);
  auto low_key = static_cast<uint32_t>(args.of.seed);
  auto high_key = static_cast<uint32_t>(args.of.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (Blocks& chain : chains)
      round_of(chain, low_key, high_key);
    low_key += 0x9E3779B9U;
    high_key += 0xBB67AE85U;
  }
  for (int i = 0; i < kChains; ++i) {
    const Vl* words = chains[i].words;
    store(out + i * kLanes,
          side_by_side(number(args.of, words[1], words[0]), number(args.of, words[3], words[2])));
  }
}

}  // namespace

void uniform_blocks(const DrawArgs& args) {
  int64_t i = 0;
  for (; i + kNumbers <= args.n; i += kNumbers)
    draw(args, args.block + static_cast<uint64_t>(i) / 2, args.out + i);
  if (i == args.n) return;
  float last[kNumbers];
  draw(args, args.block + static_cast<uint64_t>(i) / 2, last);
  std::memcpy(args.out + i, last, static_cast<size_t>(args.n - i) * sizeof(float));
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
