// SPDX-License-Identifier: Apache-2.0
// Which level this CPU has, and the tables.

#include "context.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace baseline {
extern const KernelTable kTable;
}
const char* level_name(Level level) {
  constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<int>(level)];
}

#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable kTable;
}
namespace avx512 {
extern const KernelTable kTable;
}

Level best_level() {
  // __builtin_cpu_supports also asks the operating system whether it saves the registers.
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                        __builtin_cpu_supports("f16c") != 0 && __builtin_cpu_supports("bmi") != 0 &&
                        __builtin_cpu_supports("bmi2") != 0;
  if (!has_avx2) return Level::kBaseline;
  const bool has_avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  return has_avx512 ? Level::kAvx512 : Level::kAvx2;
}

const KernelTable& kernel_table(Level level) {
  const KernelTable* const tables[] = {&baseline::kTable, &avx2::kTable, &avx512::kTable};
  return *tables[static_cast<int>(level)];
}

bool has_bf16_instructions() {
  return best_level() == Level::kAvx512 && __builtin_cpu_supports("avx512bf16") != 0;
}

bool has_bf16_tiles() {
  return __builtin_cpu_supports("amx-bf16") != 0;
}

bool has_vnni(const Context& context) {
  if (context.table == &avx512::kTable) return __builtin_cpu_supports("avx512vnni") != 0;
  return context.table == &avx2::kTable && __builtin_cpu_supports("avxvnni") != 0;
}

bool has_popcount(const Context& context) {
  return context.table == &avx512::kTable && __builtin_cpu_supports("avx512vpopcntdq") != 0;
}
#else
// One level, which every CPU of the architecture has.
Level best_level() {
  return Level::kBaseline;
}

const KernelTable& kernel_table(Level level) {
  static const KernelTable kNone = {};
  return level == Level::kBaseline ? baseline::kTable : kNone;
}

bool has_bf16_instructions() {
  return false;
}

bool has_bf16_tiles() {
  return false;
}

bool has_vnni(const Context& /*context*/) {
  return false;
}

bool has_popcount(const Context& /*context*/) {
  return false;
}
#endif

}  // namespace tenon::onednn::kernels
