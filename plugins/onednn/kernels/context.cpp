// SPDX-License-Identifier: Apache-2.0
// Which instructions this CPU has, and the tables of the levels.

#include "context.h"

#include <cstdlib>

#include <strings.h>

#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace baseline {
extern const KernelTable kTable;
}
const char* level_name(Level level) {
  constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<int>(level)];
}

Level best_level() {
  return instructions().level;
}

#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable kTable;
}
namespace avx512 {
extern const KernelTable kTable;
}

namespace {

Instructions of_this_cpu() {
  // __builtin_cpu_supports also asks the operating system whether it saves the registers.
  __builtin_cpu_init();
  Instructions here;
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                        __builtin_cpu_supports("f16c") != 0 && __builtin_cpu_supports("bmi") != 0 &&
                        __builtin_cpu_supports("bmi2") != 0;
  if (!has_avx2) return here;
  here.level = Level::kAvx2;
  here.avx_vnni = __builtin_cpu_supports("avxvnni") != 0;
  const bool has_avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (!has_avx512) return here;
  here.level = Level::kAvx512;
  here.avx512_vnni = __builtin_cpu_supports("avx512vnni") != 0;
  here.avx512_bf16 = __builtin_cpu_supports("avx512bf16") != 0;
  here.amx_bf16 = __builtin_cpu_supports("amx-bf16") != 0;
  here.avx512_vbmi = __builtin_cpu_supports("avx512vbmi") != 0;
  here.avx512_vpopcntdq = __builtin_cpu_supports("avx512vpopcntdq") != 0;
  return here;
}

// oneDNN's sets, each of which contains those before it.
enum class Set : uint8_t { kSse, kAvx2, kAvx2Vnni, kAvx512, kVnni, kBf16, kFp16, kTiles, kAll };
struct NamedSet {
  const char* name;
  Set set;
};
constexpr NamedSet kSets[] = {{"sse41", Set::kSse},
                              {"avx", Set::kSse},
                              {"avx2", Set::kAvx2},
                              {"avx2_vnni", Set::kAvx2Vnni},
                              {"avx2_vnni_2", Set::kAvx2Vnni},
                              {"avx512_core", Set::kAvx512},
                              {"avx512_core_vnni", Set::kVnni},
                              {"avx512_core_bf16", Set::kBf16},
                              {"avx10_1_512", Set::kFp16},
                              {"avx512_core_fp16", Set::kFp16},
                              {"avx512_core_amx", Set::kTiles}};

Set set_of(const char* name) {
  for (const NamedSet& each : kSets)
    if (name != nullptr && strcasecmp(name, each.name) == 0) return each.set;
  return Set::kAll;
}

}  // namespace

Instructions limited(Instructions all, const char* set) {
  const Set most = set_of(set);
  const Level level = most >= Set::kAvx512 ? Level::kAvx512
                      : most >= Set::kAvx2 ? Level::kAvx2
                                           : Level::kBaseline;
  if (level < all.level) all.level = level;
  all.avx_vnni = all.avx_vnni && most >= Set::kAvx2Vnni;
  all.avx512_vnni = all.avx512_vnni && most >= Set::kVnni;
  all.avx512_bf16 = all.avx512_bf16 && most >= Set::kBf16;
  // No set of oneDNN's names these two: CPUs of the sets up to here lack them.
  all.avx512_vbmi = all.avx512_vbmi && most > Set::kBf16;
  all.avx512_vpopcntdq = all.avx512_vpopcntdq && most > Set::kBf16;
  all.amx_bf16 = all.amx_bf16 && most >= Set::kTiles;
  return all;
}

const Instructions& instructions() {
  static const Instructions kHere = limited(of_this_cpu(), std::getenv("ONEDNN_MAX_CPU_ISA"));
  return kHere;
}

const KernelTable& kernel_table(Level level) {
  const KernelTable* const tables[] = {&baseline::kTable, &avx2::kTable, &avx512::kTable};
  return *tables[static_cast<int>(level)];
}

bool has_vnni(const Context& context) {
  if (context.table == &avx512::kTable) return instructions().avx512_vnni;
  return context.table == &avx2::kTable && instructions().avx_vnni;
}

bool has_popcount(const Context& context) {
  return context.table == &avx512::kTable && instructions().avx512_vpopcntdq;
}
#else
// One level, which every CPU of the architecture has.
Instructions limited(Instructions all, const char* /*set*/) {
  return all;
}

const Instructions& instructions() {
  static const Instructions kNone;
  return kNone;
}

const KernelTable& kernel_table(Level level) {
  static const KernelTable kNone = {};
  return level == Level::kBaseline ? baseline::kTable : kNone;
}

bool has_vnni(const Context& /*context*/) {
  return false;
}

bool has_popcount(const Context& /*context*/) {
  return false;
}
#endif

}  // namespace tenon::onednn::kernels
