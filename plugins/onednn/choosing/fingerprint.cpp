// SPDX-License-Identifier: Apache-2.0
#include "fingerprint.hpp"

#include <array>
#include <cstring>

#include <oneapi/dnnl/dnnl.hpp>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "tenon/sdk/status.hpp"

#include "cpu.hpp"
#include "kernels/context.h"

namespace tenon::onednn {
namespace {

// As the CPU names itself; empty where it does not.
std::string cpu_name() {
  std::string name;
#if defined(__x86_64__)
  constexpr unsigned kFirstLeaf = 0x80000002, kLeaves = 3;
  for (unsigned leaf = kFirstLeaf; leaf < kFirstLeaf + kLeaves; ++leaf) {
    std::array<unsigned, 4> words{};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) return {};
    std::array<char, sizeof words + 1> text{};
    std::memcpy(text.data(), words.data(), sizeof words);
    name += text.data();
  }
#endif
  return name.substr(0, name.find_last_not_of(' ') + 1);
}

}  // namespace

const std::string& fingerprint() {
  static const std::string kText = [] {
    const dnnl_version_t& dnn = *dnnl::version();
    return cat(cpu_name(), "; ", kernels::level_name(best_level()), ", isa ",
               static_cast<unsigned>(dnnl::get_effective_cpu_isa()), "; caches ",
               sysconf(_SC_LEVEL2_CACHE_SIZE), " ", sysconf(_SC_LEVEL3_CACHE_SIZE), "; tenon ",
               TENON_PLUGIN_VERSION, ", oneDNN ", dnn.major, ".", dnn.minor, ".", dnn.patch);
  }();
  return kText;
}

}  // namespace tenon::onednn
