// SPDX-License-Identifier: Apache-2.0
// Convolutions over planes of few channels, whose lines are interleaved, as products on AMX tiles
// against loops: of 8 bits, and of f32 and bf16, which may be infinite where a window sees nothing.

#include <cmath>

#include "tile_windows.h"

namespace tenon::onednn::kernels {
namespace {

using TilePlanes = OnTiles;

const Geometry kPlanes[] = {
    {{64, 64, 32, 32, 7, 7, 2, 2, 1, 1, 3, 3}, 2, 3, 64},     // ResNet's first layer
    {{45, 70, 23, 35, 7, 7, 2, 2, 1, 1, 3, 3}, 2, 3, 40},     // tiles across lines
    {{33, 65, 17, 33, 3, 3, 2, 2, 1, 1, 1, 1}, 3, 3, 32},     // MobileNet's
    {{64, 72, 14, 16, 11, 11, 4, 4, 1, 1, 0, 0}, 1, 3, 70},   // AlexNet's
    {{20, 50, 20, 50, 5, 5, 1, 1, 1, 1, 2, 2}, 1, 4, 33},     //
    {{9, 7, 9, 7, 3, 3, 1, 1, 1, 1, 1, 1}, 5, 1, 65},         // images narrower than a tile
    {{3, 3, 9, 9, 1, 1, 1, 1, 1, 1, 3, 3}, 1, 2, 16},         // windows outside of the image
    {{1, 90, 1, 45, 1, 9, 1, 2, 1, 1, 0, 4}, 2, 1, 48},       // one line
    {{120, 1000, 60, 500, 3, 3, 2, 2, 1, 1, 1, 1}, 1, 3, 8},  // few lines fit
};

// weights: [columns, window, channels], k of a column.
template <class T>
std::vector<char> packed_lines(const TileLines& lines,
                               ElementType type,
                               const std::vector<T>& weights,
                               int64_t k,
                               int64_t columns) {
  const int64_t depth = tile_line_depth(lines);
  std::vector<T> in_order(static_cast<size_t>(depth * columns));
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t i = 0; i < depth; ++i) {
      const int64_t element = tile_line_element(lines, i);
      if (element != kOutside)
        in_order[static_cast<size_t>(column * depth + i)] =
            weights[static_cast<size_t>(column * k + element)];
    }
  std::vector<char> packed(static_cast<size_t>(packed_tile_bytes(type, depth, columns)));
  pack_tiles(type, in_order.data(), 1, depth, depth, columns, packed.data());
  return packed;
}

TEST_F(TilePlanes, GiveTheExactSums) {
  size_t number = 0;
  for (const Geometry& g : kPlanes) {
    for (bool is_signed : {false, true}) {
      const Convolution conv(g, 12, true);
      TileProductArgs args;
      args.row = TileRow::kLines;
      args.lines =
          tile_lines(g.windows, g.channels, is_signed ? ElementType::kS8 : ElementType::kU8);
      ASSERT_TRUE(takes_tile_lines(args.lines)) << "geometry " << number;
      args.k = tile_line_depth(args.lines);
      const std::vector<char> packed =
          packed_lines(args.lines, ElementType::kS8, conv.weights, conv.k, g.columns);
      args.b = packed.data();
      expect_exact(conv, args, is_signed, number);
    }
    ++number;
  }
}

// Planes of f32 or bf16, some of them infinite: only the windows that see those are infinite.
class RealPlanes {
 public:
  RealPlanes(const Geometry& of, ElementType type)
      : g_(of),
        type_(type),
        count_(of.images * of.channels * of.windows.height * of.windows.width),
        images_(static_cast<size_t>(count_ * element_bytes(type))),
        k_(of.windows.window_height * of.windows.window_width * of.channels),
        weights_(random_bf16(static_cast<uint64_t>(k_ * of.columns), -1, 1, 18)) {
    const std::vector<float> numbers = uniform(static_cast<uint64_t>(count_), -1, 1, 17);
    for (int64_t i = 0; i < count_; ++i) {
      const float number = i % 331 == 330 ? INFINITY : numbers[static_cast<size_t>(i)];
      const uint16_t word = to_bf16(number);
      if (type == ElementType::kF32)
        std::memcpy(images_.data() + i * 4, &number, 4);
      else
        std::memcpy(images_.data() + i * 2, &word, 2);
    }
  }

  bool fits() const { return takes_tile_lines(tile_lines(g_.windows, g_.channels, type_)); }
  void expect_sums(size_t number) const {
    TileProductArgs args;
    args.type = ElementType::kBf16;
    args.row = TileRow::kLines;
    args.lines = tile_lines(g_.windows, g_.channels, type_);
    args.k = tile_line_depth(args.lines);
    const std::vector<char> packed =
        packed_lines(args.lines, ElementType::kBf16, weights_, k_, g_.columns);
    args.a = images_.data();
    args.b = packed.data();
    args.m = g_.images * g_.windows.out_height * g_.windows.out_width;
    args.n = g_.columns;
    std::vector<float> got(static_cast<size_t>(args.m * args.n), -1);
    const auto padded = static_cast<size_t>(tile_columns(args.n));
    const std::vector<float> scales(padded, 1), bias(padded, 0);
    args.epilogue.dst = {got.data(), ElementType::kF32, {}};
    args.epilogue.dst_stride = args.n;
    args.epilogue.scales = scales.data();
    args.epilogue.bias = bias.data();
    tile_product({nullptr, {}}, args);
    for (int64_t row = 0; row < args.m; ++row)
      for (int64_t column = 0; column < args.n; ++column)
        expect_sum(got[static_cast<size_t>(row * args.n + column)], row, column, number);
  }

 private:
  double element(int64_t image, int64_t y, int64_t x, int64_t c) const {
    const Windows& w = g_.windows;
    if (!is_inside(y, w.height) || !is_inside(x, w.width)) return 0;
    const int64_t at = ((image * g_.channels + c) * w.height + y) * w.width + x;
    float number = 0;
    uint16_t word = 0;
    std::memcpy(&word, images_.data() + at * 2, 2);
    if (type_ == ElementType::kF32) {
      std::memcpy(&number, images_.data() + at * 4, 4);
      word = to_bf16(number);
    }
    return from_bf16(word);
  }
  void expect_sum(float got, int64_t row, int64_t column, size_t number) const {
    const Windows& w = g_.windows;
    const int64_t x = row % w.out_width, y = row / w.out_width % w.out_height;
    const uint16_t* weight = &weights_[static_cast<size_t>(column * k_)];
    double sum = 0;
    for (int64_t i = 0; i < w.window_height; ++i)
      for (int64_t j = 0; j < w.window_width; ++j)
        for (int64_t c = 0; c < g_.channels; ++c)
          sum += from_bf16(*weight++) * element(row / (w.out_width * w.out_height),
                                                y * w.stride_y - w.pad_top + i,
                                                x * w.stride_x - w.pad_left + j, c);
    if (std::isnan(sum)) {
      ASSERT_TRUE(std::isnan(got)) << "geometry " << number << ", row " << row;
    } else if (std::isinf(sum)) {
      ASSERT_EQ(got, sum) << "geometry " << number << ", row " << row;
    } else {
      ASSERT_NEAR(got, sum, 1e-4) << "geometry " << number << ", row " << row;
    }
  }

  Geometry g_;
  ElementType type_;
  int64_t count_;
  Guarded images_;
  int64_t k_;
  std::vector<uint16_t> weights_;
};

TEST_F(TilePlanes, OfRealNumbersSeeNothingElse) {
  for (const Geometry& g : kPlanes)
    for (ElementType type : {ElementType::kF32, ElementType::kBf16}) {
      const RealPlanes planes(g, type);
      ASSERT_EQ(planes.fits(), g.windows.window_width <= 8);
      if (planes.fits()) planes.expect_sums(static_cast<size_t>(&g - kPlanes));
    }
}

}  // namespace
}  // namespace tenon::onednn::kernels
