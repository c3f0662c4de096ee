// SPDX-License-Identifier: Apache-2.0
// Convolutions as products on AMX tiles against loops: strides, dilations, padding on each side,
// groups of pixels that fill no register, images that end where their memory does.

#include "tile_windows.h"

namespace tenon::onednn::kernels {
namespace {

using TileWindows = OnTiles;

const Geometry kGeometries[] = {
    {{23, 31, 12, 16, 7, 7, 2, 2, 1, 1, 3, 3}, 2, 3, 64},  // a first layer
    {{14, 14, 7, 7, 1, 1, 2, 2, 1, 1, 0, 0}, 3, 256, 96},  // a strided pointwise one
    {{9, 40, 9, 40, 3, 3, 1, 1, 1, 1, 1, 1}, 1, 4, 33},    //
    {{12, 17, 8, 13, 3, 3, 1, 1, 2, 2, 0, 0}, 2, 1, 32},   // dilated
    {{5, 6, 6, 6, 3, 2, 1, 1, 1, 1, 2, 1}, 2, 70, 40},     // more padding in front
    {{1, 50, 1, 25, 1, 5, 1, 2, 1, 1, 0, 2}, 1, 4, 48},    // one line
    {{4, 4, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1}, 1, 200, 32},    // rows of 1,800 bytes
    {{3, 3, 5, 5, 1, 1, 1, 1, 1, 1, 1, 1}, 1, 65, 32},     // windows outside of the image
};

TEST_F(TileWindows, GiveTheExactSums) {
  size_t number = 0;
  for (const Geometry& g : kGeometries) {
    for (bool is_signed : {false, true}) {
      const Convolution conv(g, 11);
      TileProductArgs args;
      args.row = TileRow::kWindow;
      args.windows = {g.windows, g.channels, g.channels};
      args.b = conv.packed.data();
      args.k = conv.k;
      expect_exact(conv, args, is_signed, number);
    }
    ++number;
  }
}

const Geometry kTaps[] = {
    {{14, 14, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1}, 2, 64, 64},  //
    {{7, 7, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1}, 5, 128, 40},     // several lines in a tile
    {{15, 14, 8, 7, 3, 3, 2, 2, 1, 1, 1, 1}, 2, 64, 32},    // four phases
    {{56, 56, 56, 56, 3, 3, 1, 1, 1, 1, 1, 1}, 1, 64, 33},  // several units
    {{12, 17, 8, 13, 3, 3, 1, 1, 2, 2, 0, 0}, 2, 64, 32},   // dilated, no padding
    {{9, 10, 9, 10, 5, 5, 1, 1, 1, 1, 2, 2}, 1, 64, 96},    //
    {{11, 11, 4, 4, 3, 3, 3, 3, 1, 1, 1, 1}, 2, 64, 32},    //
    {{6, 6, 7, 6, 3, 2, 1, 1, 1, 1, 2, 1}, 2, 64, 32},      // more padding in front
    {{6, 6, 6, 7, 1, 4, 1, 1, 1, 1, 0, 1}, 2, 64, 32},      // and behind
    {{10, 20, 10, 10, 3, 3, 1, 1, 1, 1, 1, 1}, 1, 64, 32},  // lines that end before the image
    {{14, 14, 7, 7, 1, 1, 2, 2, 1, 1, 0, 0}, 3, 256, 96},   // a strided pointwise one
    {{3, 3, 7, 7, 1, 1, 1, 1, 1, 1, 2, 2}, 1, 64, 32},      // windows outside of the image
    {{9, 2, 9, 2, 5, 5, 1, 1, 1, 1, 2, 2}, 3, 64, 32},      // padding as wide as the image
};

TEST_F(TileWindows, OfManyChannelsGiveTheExactSums) {
  size_t number = 0;
  for (const Geometry& g : kTaps) {
    for (bool is_signed : {false, true}) {
      const Convolution conv(g, 13);
      TileProductArgs args;
      args.row = TileRow::kTaps;
      args.taps = tile_taps(g.windows, g.channels);
      ASSERT_TRUE(takes_tile_taps(args.taps)) << "geometry " << number;
      args.b = conv.packed.data();
      args.k = conv.k;
      expect_exact(conv, args, is_signed, number);
    }
    ++number;
  }
}

// bf16 images of g.channels / 2 channels, so that a pixel has as many bytes as one of 8 bits.
struct Bf16Convolution {
  Geometry g;
  int64_t channels, k, rows;
  std::vector<uint16_t> images, weights, packed;

  explicit Bf16Convolution(const Geometry& of)
      : g(of),
        channels(of.channels / 2),
        k(of.windows.window_height * of.windows.window_width * channels),
        rows(of.images * of.windows.out_height * of.windows.out_width),
        images(random_bf16(
            static_cast<uint64_t>(of.images * of.windows.height * of.windows.width * channels),
            -1,
            1,
            15)),
        weights(random_bf16(static_cast<uint64_t>(k * of.columns), -1, 1, 16)),
        packed(static_cast<size_t>(packed_tile_bytes(ElementType::kBf16, k, of.columns)) / 2) {
    pack_tiles(ElementType::kBf16, weights.data(), 1, k, k, g.columns, packed.data());
  }

  // What the windows see, row by row.
  std::vector<uint16_t> patches() const {
    const Windows& w = g.windows;
    std::vector<uint16_t> seen;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t left = row % w.out_width * w.stride_x - w.pad_left;
      const int64_t top = row / w.out_width % w.out_height * w.stride_y - w.pad_top;
      for (int64_t tap = 0; tap < w.window_height * w.window_width; ++tap)
        see(row / (w.out_width * w.out_height), top + tap / w.window_width * w.step_y,
            left + tap % w.window_width * w.step_x, &seen);
    }
    return seen;
  }
  std::vector<float> run(TileProductArgs args) const {
    std::vector<float> result(static_cast<size_t>(rows * g.columns), -1);
    const auto padded = static_cast<size_t>(tile_columns(g.columns));
    const std::vector<float> scales(padded, 1), bias(padded, 0.5F);
    args.type = ElementType::kBf16;
    args.b = packed.data();
    args.m = rows;
    args.n = g.columns;
    args.k = k;
    args.epilogue.dst = {result.data(), ElementType::kF32, {}};
    args.epilogue.dst_stride = g.columns;
    args.epilogue.scales = scales.data();
    args.epilogue.bias = bias.data();
    tile_product({nullptr, {}}, args);
    return result;
  }

 private:
  void see(int64_t image, int64_t y, int64_t x, std::vector<uint16_t>* seen) const {
    const Windows& w = g.windows;
    const bool is_inside = y >= 0 && y < w.height && x >= 0 && x < w.width;
    const auto at = static_cast<size_t>(((image * w.height + y) * w.width + x) * channels);
    for (int64_t c = 0; c < channels; ++c)
      seen->push_back(is_inside ? images[at + static_cast<size_t>(c)] : uint16_t{0});
  }
};

// As the product of the patches, to the bit: the order of the sums is the same.
TEST_F(TileWindows, OfManyChannelsInBf16AreTheProductOfTheirPatches) {
  for (const Geometry& g : kTaps) {
    const Bf16Convolution conv(g);
    TileProductArgs in_place;
    in_place.a = conv.images.data();
    in_place.row = TileRow::kTaps;
    in_place.taps = tile_taps(g.windows, 2 * conv.channels);
    ASSERT_TRUE(takes_tile_taps(in_place.taps)) << "geometry " << &g - kTaps;
    const std::vector<uint16_t> patches = conv.patches();
    TileProductArgs gathered;
    gathered.a = patches.data();
    gathered.a_stride = 2 * conv.k;
    ASSERT_EQ(conv.run(in_place), conv.run(gathered)) << "geometry " << &g - kTaps;
  }
}

// What lies in the padding between two lines is stored where the next line is stored later: it must
// not reach beyond that line.
TEST_F(TileWindows, OfManyChannelsAreNoNarrowerThanTheirPadding) {
  const Windows dilated{7, 7, 7, 7, 3, 3, 1, 1, 12, 12, 12, 12};
  const Windows narrow{9, 1, 9, 1, 5, 5, 1, 1, 1, 1, 2, 2};
  const Windows wide_enough{9, 2, 9, 2, 5, 5, 1, 1, 1, 1, 2, 2};
  EXPECT_FALSE(takes_tile_taps(tile_taps(dilated, 64)));
  EXPECT_FALSE(takes_tile_taps(tile_taps(narrow, 64)));
  EXPECT_TRUE(takes_tile_taps(tile_taps(wide_enough, 64)));
}

// Gathered and in place the same: whatever follows the sums, rows find their own residual.
TEST_F(TileWindows, OfManyChannelsGoThroughEachEpilogue) {
  for (const Geometry& g : kTaps) {
    const Convolution conv(g, 14);
    if (!takes_tile_rows(ElementType::kU8, conv.k)) continue;
    const auto count =
        static_cast<uint64_t>(g.images * g.windows.out_height * g.windows.out_width * g.columns);
    const auto padded = static_cast<uint64_t>(tile_columns(g.columns));
    std::vector<uint8_t> residual(count);
    for (size_t i = 0; i < residual.size(); ++i)
      residual[i] = static_cast<uint8_t>(i * 37);
    const std::vector<float> scales = uniform(padded, 1e-4F, 3e-4F, 3),
                             bias = uniform(padded, 0, 9, 4);
    const EpilogueOp ops[] = {{.kind = EpilogueOp::Kind::kAdd,
                               .alpha = 1,
                               .other = {residual.data(), ElementType::kU8, {0.25F, 3}},
                               .row_stride = g.columns,
                               .column_stride = 1},
                              {.kind = EpilogueOp::Kind::kGeluErf}};
    for (int n_ops : {0, 1, 2}) {
      std::vector<uint8_t> results[2];
      for (TileRow row : {TileRow::kWindow, TileRow::kTaps}) {
        TileProductArgs args;
        args.a = conv.images.data();
        args.zero = 113;
        args.row = row;
        args.windows = {g.windows, g.channels, g.channels};
        args.taps = tile_taps(g.windows, g.channels);
        args.b = conv.packed.data();
        args.m = static_cast<int64_t>(count) / g.columns;
        args.n = g.columns;
        args.k = conv.k;
        std::vector<uint8_t>& result = results[row == TileRow::kTaps ? 1 : 0];
        result.assign(count + 64, 77);
        args.epilogue.dst = {result.data(), ElementType::kU8, {1, 20}};
        args.epilogue.dst_stride = g.columns;
        args.epilogue.scales = scales.data();
        args.epilogue.bias = bias.data();
        args.epilogue.ops = ops;
        args.epilogue.n_ops = n_ops;
        tile_product({nullptr, {}}, args);
      }
      ASSERT_EQ(results[0], results[1]) << "geometry " << &g - kTaps << ", operations " << n_ops;
    }
  }
}

}  // namespace
}  // namespace tenon::onednn::kernels
