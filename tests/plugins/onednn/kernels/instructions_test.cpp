// SPDX-License-Identifier: Apache-2.0
// One machine stands for a lesser one: oneDNN's setting lowers what our kernels use.
#include "kernels/instructions.h"

#include <gtest/gtest.h>

namespace tenon::onednn::kernels {
namespace {

constexpr Instructions kAll{Level::kAvx512, true, true, true, true, true, true};

struct Case {
  const char* set;
  Level level;
  bool vnni, avx_vnni, bf16, tiles, vbmi;
};

class Limited : public testing::TestWithParam<Case> {};

TEST_P(Limited, LeavesWhatTheSetHas) {
  const Case wanted = GetParam();

  const Instructions got = limited(kAll, wanted.set);

  EXPECT_EQ(got.level, wanted.level);
  EXPECT_EQ(got.avx512_vnni, wanted.vnni);
  EXPECT_EQ(got.avx_vnni, wanted.avx_vnni);
  EXPECT_EQ(got.avx512_bf16, wanted.bf16);
  EXPECT_EQ(got.amx_bf16, wanted.tiles);
  EXPECT_EQ(got.avx512_vbmi, wanted.vbmi);
  EXPECT_EQ(got.avx512_vpopcntdq, wanted.vbmi);
}

TEST_P(Limited, AddsNothing) {
  const Instructions got = limited({}, GetParam().set);

  EXPECT_EQ(got.level, Level::kBaseline);
  EXPECT_FALSE(got.avx512_vnni || got.avx_vnni || got.avx512_bf16 || got.amx_bf16 ||
               got.avx512_vbmi || got.avx512_vpopcntdq);
}

INSTANTIATE_TEST_SUITE_P(
    Sets,
    Limited,
    testing::Values(Case{"SSE41", Level::kBaseline, false, false, false, false, false},
                    Case{"AVX2", Level::kAvx2, false, false, false, false, false},
                    Case{"AVX2_VNNI", Level::kAvx2, false, true, false, false, false},
                    Case{"AVX512_CORE", Level::kAvx512, false, true, false, false, false},
                    Case{"avx512_core_vnni", Level::kAvx512, true, true, false, false, false},
                    Case{"AVX512_CORE_BF16", Level::kAvx512, true, true, true, false, false},
                    Case{"AVX512_CORE_FP16", Level::kAvx512, true, true, true, false, true},
                    Case{"AVX512_CORE_AMX", Level::kAvx512, true, true, true, true, true},
                    Case{"DEFAULT", Level::kAvx512, true, true, true, true, true},
                    Case{nullptr, Level::kAvx512, true, true, true, true, true}));

}  // namespace
}  // namespace tenon::onednn::kernels
