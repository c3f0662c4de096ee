// SPDX-License-Identifier: Apache-2.0
#pragma once
// splitmix64 (Steele et al., OOPSLA 2014): integers for the sample columns of rows, and seeds made
// of other seeds. What a model draws comes from services.random.

#include <cstdint>

namespace tenon {

inline constexpr uint64_t kSplitmixStep = 0x9e3779b97f4a7c15u;

// The number behind `state`; the next one's state is kSplitmixStep more.
constexpr uint64_t splitmix64(uint64_t state) {
  uint64_t z = state + kSplitmixStep;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class SampleIntegers {
 public:
  explicit SampleIntegers(uint64_t seed) : state_(seed * kSplitmixStep + 1) {}

  // A number in low..high, both possible.
  int64_t integer(int64_t low, int64_t high) {
    uint64_t number = splitmix64(state_);
    state_ += kSplitmixStep;
    return low + static_cast<int64_t>(number % static_cast<uint64_t>(high - low + 1));
  }

 private:
  uint64_t state_;
};

}  // namespace tenon
