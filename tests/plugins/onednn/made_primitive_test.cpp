// SPDX-License-Identifier: Apache-2.0
#include "lowering/made_primitive.hpp"

#include <gtest/gtest.h>

namespace tenon::onednn::test {
namespace {

using dnnl::memory;
constexpr auto kF32 = memory::data_type::f32;

// A pointwise convolution of one pixel, multiplied by an operand with these strides. oneDNN's
// cache takes all such operands for the same one.
dnnl::convolution_forward::primitive_desc gated(const dnnl::engine& engine,
                                                memory::dim channels,
                                                const memory::dims& strides) {
  const memory::dims pixel{1, channels, 1, 1};
  const memory::desc image(pixel, kF32, memory::format_tag::nhwc);
  const memory::desc weights({channels, channels, 1, 1}, kF32, memory::format_tag::any);
  dnnl::post_ops ops;
  ops.append_binary(dnnl::algorithm::binary_mul, memory::desc(pixel, kF32, strides));
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return {engine,
          dnnl::prop_kind::forward_inference,
          dnnl::algorithm::convolution_auto,
          image,
          weights,
          image,
          {1, 1},
          {0, 0},
          {0, 0},
          attr};
}

TEST(MadePrimitive, IsWhatItsDescriptionSays) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  for (memory::dim channels : {8, 16, 24, 32, 64}) {
    const memory::dims all[] = {{channels, 1, 1, 1}, {channels, 1, channels, channels}};
    for (const memory::dims& strides : all) {
      auto description = gated(engine, channels, strides);
      auto primitive = made_from<dnnl::convolution_forward>(description);
      EXPECT_TRUE(is_made_from(primitive, description))
          << channels << " channels: " << description.impl_info_str();
    }
  }
}

TEST(MadePrimitive, IsNotMadeFromAnother) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  auto small = gated(engine, 8, {8, 1, 8, 8});
  auto large = gated(engine, 64, {64, 1, 64, 64});
  EXPECT_FALSE(is_made_from(dnnl::convolution_forward(small), large));
}

TEST(MadePrimitive, LeavesTheCacheAsLargeAsItWas) {
  const int before = dnnl::get_primitive_cache_capacity();
  {
    WithoutCache without_cache;
    EXPECT_EQ(dnnl::get_primitive_cache_capacity(), 0);
  }
  EXPECT_EQ(dnnl::get_primitive_cache_capacity(), before);
}

}  // namespace
}  // namespace tenon::onednn::test
