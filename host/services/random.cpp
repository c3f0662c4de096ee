// SPDX-License-Identifier: Apache-2.0
// Service "tenon.host.random/1": Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011, section 4.3). The counter is {block, stream}, the key is the seed, each
// split into 32-bit words, low word first; number i of a stream is word i % 4 of block i / 4.
#include "tenon/host/random.h"

#include <array>
#include <cmath>
#include <numbers>

#include "services/services.hpp"

namespace tenon::host {

using Block = std::array<uint32_t, 4>;

Block philox(uint64_t seed, uint64_t stream, uint64_t block) {
  constexpr uint32_t kMultiply[2] = {0xD2511F53u, 0xCD9E8D57u};
  constexpr uint32_t kWeyl[2] = {0x9E3779B9u, 0xBB67AE85u};
  Block c = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
             static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = static_cast<uint64_t>(kMultiply[0]) * c[0];
    uint64_t b = static_cast<uint64_t>(kMultiply[1]) * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kWeyl[0];
    key[1] += kWeyl[1];
  }
  return c;
}

namespace {

// 53 bits of two words, in [0, 1).
double unit(uint32_t high, uint32_t low) {
  uint64_t bits = (static_cast<uint64_t>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

// Number i of a stream is one of the `each` that a block has: of(words).
template <uint64_t each, class T, class Of>
void draw(uint64_t seed, uint64_t stream, uint64_t first, T* out, uint64_t n, Of of) {
  for (uint64_t i = 0; i < n;) {
    const std::array<T, each> numbers = of(philox(seed, stream, (first + i) / each));
    for (uint64_t lane = (first + i) % each; lane < each && i < n; ++lane, ++i)
      out[i] = numbers[lane];
  }
}

void bits(uint64_t seed, uint64_t stream, uint64_t first, uint32_t* out, uint64_t n) {
  draw<4>(seed, stream, first, out, n, [](const Block& words) { return words; });
}

std::array<double, 2> units(const Block& words) {
  return {unit(words[1], words[0]), unit(words[3], words[2])};
}

void uniform(uint64_t seed, uint64_t stream, uint64_t first, double* out, uint64_t n) {
  draw<2>(seed, stream, first, out, n, units);
}

// Box and Muller, "A note on the generation of random normal deviates", 1958.
void normal(uint64_t seed, uint64_t stream, uint64_t first, double* out, uint64_t n) {
  draw<2>(seed, stream, first, out, n, [](const Block& words) {
    auto [a, b] = units(words);
    double radius = std::sqrt(-2.0 * std::log(1.0 - a));  // 1 - a is in (0, 1]
    double angle = 2.0 * std::numbers::pi * b;
    return std::array{radius * std::cos(angle), radius * std::sin(angle)};
  });
}

}  // namespace

const tn_host_random* random_service() {
  static const tn_host_random table{sizeof table, 1, bits, uniform, normal};
  return &table;
}

}  // namespace tenon::host
