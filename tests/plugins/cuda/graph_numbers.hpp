// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random inputs for a graph, and how far two sets of results lie apart.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "tenon/sdk/graph.hpp"
#include "tenon/sdk/number.hpp"

#include "plan_runner.hpp"

namespace tenon::cuda::test {

// Floats as the type's own bytes.
inline Bytes packed(uint32_t dtype, const std::vector<float>& numbers) {
  Bytes out(bytes_of(dtype, static_cast<int64_t>(numbers.size())));
  for (size_t i = 0; i < numbers.size(); ++i) {
    auto put = [&](auto value) {
      std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
    };
    auto whole = static_cast<int64_t>(std::lround(numbers[i]));
    uint32_t bits = std::bit_cast<uint32_t>(numbers[i]);
    if (dtype == TN_F32) put(numbers[i]);
    if (dtype == TN_F64) put(static_cast<double>(numbers[i]));
    if (dtype == TN_BF16) put(static_cast<uint16_t>(bits >> 16));
    // Random halves have few bits: no rounding is needed.
    if (dtype == TN_F16) {
      put(static_cast<uint16_t>(numbers[i] == 0
                                    ? 0
                                    : (bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) |
                                          (bits >> 13 & 1023)));
    }
    if (dtype == TN_BOOL) put(static_cast<uint8_t>(numbers[i] > 0));
    if (dtype == TN_I8 || dtype == TN_U8) put(static_cast<uint8_t>(whole));
    if (dtype == TN_I16 || dtype == TN_U16) put(static_cast<uint16_t>(whole));
    if (dtype == TN_I32 || dtype == TN_U32) put(static_cast<uint32_t>(whole));
    if (dtype == TN_I64 || dtype == TN_U64) put(whole);
  }
  return out;
}

// Multiples of 1/64 in [-2, 2]: exact in every floating-point type but bfloat16, which cuts them.
inline std::vector<Bytes> random_inputs(const tn_graph* graph, uint32_t seed) {
  std::vector<Bytes> out;
  std::vector<Value> states = Graph{graph}.list(TN_LIST_STATES, 0);
  std::mt19937 random(seed);
  for (Value input : Graph{graph}.inputs()) {
    if (std::find(states.begin(), states.end(), input) != states.end()) continue;
    std::vector<float> numbers(static_cast<size_t>(input.type().elements()));
    for (float& x : numbers)
      x = static_cast<float>(static_cast<int>(random() % 257) - 128) / 64;
    out.push_back(packed(input.dtype(), numbers));
  }
  return out;
}

// The largest difference relative to the largest finite magnitude, at least 1.
inline double difference(const Bytes& got, const Bytes& expected, uint32_t dtype) {
  if (got.size() != expected.size()) return INFINITY;
  int64_t count = static_cast<int64_t>(got.size() * 8 / TN_DTYPE_BITS(dtype));
  Dims dims = {count};
  Result<std::vector<double>> a = numbers_as<double>(*DenseView(dtype, dims, got.data()));
  Result<std::vector<double>> b = numbers_as<double>(*DenseView(dtype, dims, expected.data()));
  if (!a.ok() || !b.ok()) return got == expected ? 0 : INFINITY;
  double most = 1, worst = 0;
  for (double x : *b)
    most = std::isfinite(x) ? std::max(most, std::abs(x)) : most;
  for (size_t i = 0; i < a->size(); ++i) {
    double x = (*a)[i], y = (*b)[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double error = std::abs(x - y) / most;
    worst = std::max(worst, std::isnan(error) ? INFINITY : error);
  }
  return worst;
}

}  // namespace tenon::cuda::test
