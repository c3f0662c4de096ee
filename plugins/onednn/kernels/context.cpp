// SPDX-License-Identifier: Apache-2.0
// Which level this CPU has, and the tables.

#include "context.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace baseline {
extern const KernelTable kTable;
}
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

const char* level_name(Level level) {
  constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<int>(level)];
}

bool has_bf16_instructions() {
  return best_level() == Level::kAvx512 && __builtin_cpu_supports("avx512bf16") != 0;
}

const KernelTable& kernel_table(Level level) {
  const KernelTable* const tables[] = {&baseline::kTable, &avx2::kTable, &avx512::kTable};
  return *tables[static_cast<int>(level)];
}

}  // namespace tenon::onednn::kernels
