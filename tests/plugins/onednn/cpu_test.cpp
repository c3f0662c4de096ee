// SPDX-License-Identifier: Apache-2.0
// Our kernels and oneDNN's primitives use the same instructions, under every setting of
// ONEDNN_MAX_CPU_ISA that the suites run with.
#include <gtest/gtest.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/instructions.h"

namespace tenon::onednn {
namespace {

bool has(dnnl::cpu_isa set) {
  const auto bits = static_cast<unsigned>(set);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

TEST(Cpu, HasTheInstructionsThatOneDnnUses) {
  const kernels::Instructions& ours = kernels::instructions();

  EXPECT_EQ(ours.level >= kernels::Level::kAvx2, has(dnnl::cpu_isa::avx2));
  EXPECT_EQ(ours.level == kernels::Level::kAvx512, has(dnnl::cpu_isa::avx512_core));
  EXPECT_EQ(ours.avx512_vnni, has(dnnl::cpu_isa::avx512_core_vnni));
  EXPECT_EQ(ours.avx512_bf16, has(dnnl::cpu_isa::avx512_core_bf16));
  EXPECT_EQ(ours.amx_bf16, has(dnnl::cpu_isa::avx512_core_amx));
}

}  // namespace
}  // namespace tenon::onednn
