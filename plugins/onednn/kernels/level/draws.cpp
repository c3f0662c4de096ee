// SPDX-License-Identifier: Apache-2.0
// Numbers by Philox4x32-10; contract in ../draws.h. A lane of 64 bits is a block. Its words
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

Blocks counters(uint64_t stream, uint64_t block) {
  Vl at;
  for (int i = 0; i < kHalfLanes; ++i)
    at[i] = static_cast<int64_t>(block) + i;
  const Vl low = Vl{} + static_cast<int64_t>(stream);
  return {{at, high_half(at), low, high_half(low)}};
}

void round_of(Blocks& of, int64_t low_key, int64_t high_key) {
  const Vl a = multiply_low_halves(of.words[0], Vl{} + int64_t{0xD2511F53});
  const Vl b = multiply_low_halves(of.words[2], Vl{} + int64_t{0xCD9E8D57});
  of = {{high_half(b) ^ of.words[1] ^ low_key, b, high_half(a) ^ of.words[3] ^ high_key, a}};
}

void draw(uint64_t seed, uint64_t stream, uint64_t block, Blocks* chains) {
  for (int i = 0; i < kChains; ++i)
    chains[i] = counters(stream, block + static_cast<uint64_t>(i) * kHalfLanes);
  auto low_key = static_cast<uint32_t>(seed), high_key = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kChains; ++i)
      round_of(chains[i], low_key, high_key);
    low_key += 0x9E3779B9U;
    high_key += 0xBB67AE85U;
  }
}

// 53 bits of two words, times 2^-53: the upper 21 and the lower 32 stand behind the exponents of
// 2^84 and 2^52, which are then taken off.
Vd unit(Vl high, Vl low) {
  constexpr int64_t kLowHalf = 0xffffffff, k52 = 0x4330000000000000, k84 = 0x4530000000000000;
  const Vl upper = (high & kLowHalf) >> 11;
  const Vl lower = (high << 21 | (low & kLowHalf) >> 11) & kLowHalf;
  const Vd whole = reinterpret_cast<Vd>(upper | k84) - (0x1p84 + 0x1p52);
  return (whole + reinterpret_cast<Vd>(lower | k52)) * 0x1p-53;
}

HalfLanes<float> number(const Draws& draws, Vl high, Vl low) {
  const auto made =
      __builtin_convertvector(draws.shift + draws.scale * unit(high, low), HalfLanes<float>);
  return made < draws.largest ? made : HalfLanes<float>{} + draws.largest;
}

// Two numbers of each lane, one behind the other.
Vf side_by_side(HalfLanes<float> first, HalfLanes<float> second) {
  using Words = HalfLanes<uint64_t>;
  const auto widened = [](HalfLanes<float> x) {
    return __builtin_convertvector(reinterpret<HalfLanes<uint32_t>>(x), Words);
  };
  return reinterpret<Vf>(widened(first) | widened(second) << 32);
}

// kNumbers from a block on.
void draw_numbers(const Draws& draws, uint64_t block, float* out) {
  Blocks chains[kChains];
  draw(draws.seed, draws.stream, block, chains);
  for (int i = 0; i < kChains; ++i) {
    const Vl* words = chains[i].words;
    store(out + i * kLanes,
          side_by_side(number(draws, words[1], words[0]), number(draws, words[3], words[2])));
  }
}

}  // namespace

void uniform_blocks(const DrawArgs& args) {
  auto block_of = [&](int64_t i) { return args.block + static_cast<uint64_t>(i) / 2; };
  int64_t i = 0;
  for (; i + kNumbers <= args.n; i += kNumbers)
    draw_numbers(args.of, block_of(i), args.out + i);
  if (i == args.n) return;
  float last[kNumbers];
  draw_numbers(args.of, block_of(i), last);
  std::memcpy(args.out + i, last, static_cast<size_t>(args.n - i) * sizeof(float));
}

void uniform_pairs(const DrawnPairs& pairs) {
  constexpr int64_t kBlocks = kNumbers / 2;
  static_assert(kDrawnPairs % kBlocks == 0);
  for (int64_t at = 0; at < kDrawnPairs; at += kBlocks) {
    Blocks chains[kChains];
    draw(pairs.seed, pairs.stream, pairs.block + static_cast<uint64_t>(at), chains);
    for (int i = 0; i < kChains; ++i) {
      const Vl* words = chains[i].words;
      const Vd first = unit(words[1], words[0]), second = unit(words[3], words[2]);
      std::memcpy(pairs.first + at + i * kHalfLanes, &first, sizeof first);
      std::memcpy(pairs.second + at + i * kHalfLanes, &second, sizeof second);
    }
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
