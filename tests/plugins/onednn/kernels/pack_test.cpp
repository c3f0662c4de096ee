// SPDX-License-Identifier: Apache-2.0
// Packed weights against index arithmetic, from both orders of channels.

#include "kernels/pack.h"

#include <cstring>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Pack : public EachLevel {};

constexpr int64_t kSpatial = 9;

// Of the nearest bf16; the numbers here are finite.
uint16_t rounded(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

struct Size {
  int64_t out, block, in;
};
// Full blocks, and a last one that is not; inputs that are no multiple of what dst has.
constexpr Size kSizes[] = {{48, 16, 2},   {144, 48, 20}, {192, 64, 130}, {64, 64, 1},
                           {177, 64, 33}, {33, 16, 257}, {5, 48, 300}};
constexpr int64_t kInputs = 4;  // dst has multiples of so many

PackArgs case_of(ElementType type, bool by_rows, const Size& size) {
  const auto& [out, block, in] = size;
  PackArgs args{.type = type, .out = out, .block = block, .spatial = kSpatial, .in = in};
  args.padded_in = (in + kInputs - 1) / kInputs * kInputs;
  args.src_out = by_rows ? 1 : kSpatial * in;
  args.src_in = by_rows ? out : 1;
  args.src_spatial = by_rows ? out * in : in;
  args.dst_spatial = block * args.padded_in;
  args.dst_block = kSpatial * args.dst_spatial;
  return args;
}

template <class T, class Stored>
void expect_packed(PackArgs args, const Context& context, int64_t pair, Stored stored) {
  std::vector<T> dst(static_cast<size_t>(args.blocks() * args.dst_block) + 1, T{77});
  args.dst = dst.data();
  pack(context, args);
  EXPECT_EQ(dst.back(), T{77});
  for (int64_t out = 0; out < args.blocks() * args.block; ++out) {
    for (int64_t place = 0; place < args.spatial; ++place) {
      for (int64_t in = 0; in < args.padded_in; ++in) {
        const int64_t from = out * args.src_out + in * args.src_in + place * args.src_spatial;
        const int64_t to = out / args.block * args.dst_block + place * args.dst_spatial +
                           (in / pair * args.block + out % args.block) * pair + in % pair;
        const bool is_there = out < args.out && in < args.in;
        ASSERT_EQ(dst[static_cast<size_t>(to)], is_there ? stored(args.src[from]) : T{})
            << out << " " << place << " " << in;
      }
    }
  }
}

TEST_P(Pack, ToBlocksFromBothOrders) {
  for (bool by_rows : {true, false}) {
    for (const Size& size : kSizes) {
      const std::vector<float> src =
          uniform(static_cast<uint64_t>(size.out * kSpatial * size.in), -2, 2);
      PackArgs args = case_of(ElementType::kF32, by_rows, size);
      args.src = src.data();
      expect_packed<float>(args, context_, 1, [](float x) { return x; });
      args.type = ElementType::kBf16;
      expect_packed<uint16_t>(args, context_, 2, rounded);
    }
  }
}

TENON_EACH_LEVEL(Pack);

}  // namespace
}  // namespace tenon::onednn::kernels
