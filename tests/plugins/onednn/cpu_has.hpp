// SPDX-License-Identifier: Apache-2.0
#pragma once
// What onednn may use here: what the CPU has, as far as ONEDNN_MAX_CPU_ISA leaves it.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace tenon::test {

// One of oneDNN's names of sets, each of which contains those before it; DEFAULT is none of them.
inline bool is_allowed(std::string_view set) {
  constexpr std::array<std::string_view, 11> kSets = {"SSE41",
                                                      "AVX",
                                                      "AVX2",
                                                      "AVX2_VNNI",
                                                      "AVX2_VNNI_2",
                                                      "AVX512_CORE",
                                                      "AVX512_CORE_VNNI",
                                                      "AVX512_CORE_BF16",
                                                      "AVX10_1_512",
                                                      "AVX512_CORE_FP16",
                                                      "AVX512_CORE_AMX"};
  const char* const most = std::getenv("ONEDNN_MAX_CPU_ISA");
  const auto rank = [&](std::string_view name) {
    return std::find(kSets.begin(), kSets.end(), name) - kSets.begin();
  };
  return most == nullptr || rank(set) <= rank(most);
}
inline bool has_avx512() {
  return is_allowed("AVX512_CORE") && __builtin_cpu_supports("avx512vl") != 0;
}
inline bool has_vnni() {
  return is_allowed("AVX512_CORE_VNNI") && __builtin_cpu_supports("avx512vnni") != 0;
}
inline bool has_bf16_products() {
  return is_allowed("AVX512_CORE_BF16") && __builtin_cpu_supports("avx512bf16") != 0;
}
inline bool has_tiles() {
  return is_allowed("AVX512_CORE_AMX") && __builtin_cpu_supports("amx-bf16") != 0;
}

}  // namespace tenon::test
