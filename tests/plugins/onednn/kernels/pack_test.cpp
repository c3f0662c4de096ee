// SPDX-License-Identifier: Apache-2.0
// Packed weights against index arithmetic, from both orders of channels.

#include "kernels/pack.h"

#include <cstring>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Pack : public EachLevel {};

constexpr int64_t kBlocks = 3;
constexpr int64_t kSpatial = 9;

// Of the nearest bf16; the numbers here are finite.
uint16_t rounded(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

PackArgs case_of(ElementType type, bool by_rows, int64_t block, int64_t in) {
  PackArgs args{.type = type, .blocks = kBlocks, .block = block, .spatial = kSpatial, .in = in};
  const int64_t out = kBlocks * block;
  args.src_out = by_rows ? 1 : kSpatial * in;
  args.src_in = by_rows ? out : 1;
  args.src_spatial = by_rows ? out * in : in;
  args.dst_spatial = block * in;
  args.dst_block = kSpatial * args.dst_spatial;
  return args;
}

template <class T, class Stored>
void expect_packed(const PackArgs& args, int64_t pair, Stored stored) {
  const T* dst = static_cast<const T*>(args.dst);
  for (int64_t out = 0; out < args.blocks * args.block; ++out) {
    for (int64_t place = 0; place < args.spatial; ++place) {
      for (int64_t in = 0; in < args.in; ++in) {
        const int64_t from = out * args.src_out + in * args.src_in + place * args.src_spatial;
        const int64_t to = out / args.block * args.dst_block + place * args.dst_spatial +
                           (in / pair * args.block + out % args.block) * pair + in % pair;
        ASSERT_EQ(dst[to], stored(args.src[from])) << out << " " << place << " " << in;
      }
    }
  }
}

TEST_P(Pack, ToBlocksFromBothOrders) {
  for (bool by_rows : {true, false}) {
    for (int64_t block : {16, 48, 64}) {
      for (int64_t in : {2, 20, 64, 130}) {
        const uint64_t count = static_cast<uint64_t>(kBlocks * block * kSpatial * in);
        const std::vector<float> src = uniform(count, -2, 2);
        PackArgs args = case_of(ElementType::kF32, by_rows, block, in);
        std::vector<float> floats(count);
        args.src = src.data();
        args.dst = floats.data();
        pack(context_, args);
        expect_packed<float>(args, 1, [](float x) { return x; });

        args.type = ElementType::kBf16;
        std::vector<uint16_t> halves(count);
        args.dst = halves.data();
        pack(context_, args);
        expect_packed<uint16_t>(args, 2, rounded);
      }
    }
  }
}

TENON_EACH_LEVEL(Pack);

}  // namespace
}  // namespace tenon::onednn::kernels
