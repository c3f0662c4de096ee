// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which instructions kernels may use here. Nothing is defined in this header: files of all levels
// include it.

#include "types.h"

namespace tenon::onednn::kernels {

// What this CPU and its operating system support, as far as oneDNN's setting ONEDNN_MAX_CPU_ISA
// allows it: one machine can stand for a lesser one. Kernels ask here and nowhere else.
struct Instructions {
  Level level = Level::kBaseline;
  bool avx512_vnni = false, avx_vnni = false;
  bool avx512_bf16 = false, amx_bf16 = false;
  bool avx512_vbmi = false, avx512_vpopcntdq = false;
};
const Instructions& instructions();
// Of `all`, those of a CPU that one of oneDNN's names of sets describes ("AVX2",
// "avx512_core_vnni"); all of them for NULL, DEFAULT, ALL and unknown names, as oneDNN has it.
Instructions limited(Instructions all, const char* set);

}  // namespace tenon::onednn::kernels
