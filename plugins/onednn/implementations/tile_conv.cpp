// SPDX-License-Identifier: Apache-2.0
// Convolutions with known weights on AMX tiles, in int8 and, with precision=bf16, in bf16: three
// implementations, by how a tile finds what the windows see.

#include <utility>

#include "conv_site.hpp"
#include "tile_step.hpp"

namespace tenon::onednn {
namespace {

// What the three have in common: why none of them applies, or the step but for its source.
struct Start {
  std::string why_not;
  ElementType type = {};
  GemmStep step = {};
};

Start start(const ConvSite& site) {
  const Lowering& lowering = site.lowering;
  if (!computes_in_tiles()) return {kNoTiles};
  const Node& node = site.node();
  const View& src = lowering.view(node.inputs[0]);
  const auto type = type_of_left(lowering, src, lowering.view(node.inputs[1]), 0);
  if (!type) return {kNoOperands};
  if (std::string why = why_not_one_product(site); !why.empty()) return {std::move(why)};
  return {{}, *type, conv_step(lowering, site.index)};
}

using Build = void (*)(const ConvSite&, ElementType, GemmStep, GemmEpilogue);

Offer offer(const ConvSite& site, const Start& begun, Build build) {
  const GemmStep& step = begun.step;
  GemmEpilogue taken = gemm_epilogue_of(site.lowering, step, site.epilogue);
  if (taken.epilogue.nodes.size() != site.epilogue.nodes.size()) return refused(kPartOfEpilogue);
  return accepted(
      [&site, type = begun.type, step, taken, build] { build(site, type, step, taken); });
}

bool sees_one_pixel(const GemmStep& step) {
  const kernels::ConvWindows& w = step.args.a.windows;
  return w.window_height * w.window_width == 1;
}

// Windows are gathered row by row, which takes as long as many products: it is worth it in front of
// enough columns, where the windows see one pixel of enough channels, or in a first layer, for
// which oneDNN wants a layout of its own. Measured over 24 geometries (tests/bench/README.md).
std::string why_not_gather(const GemmStep& step, ElementType type) {
  constexpr int64_t kLeastColumns = 64, kFewChannels = 4, kManyChannels = 64, kMostLines = 5;
  const kernels::ConvWindows& w = step.args.a.windows;
  if (!step.args.a.has_windows) return {};
  if (type == ElementType::kBf16 && !sees_one_pixel(step)) return "windows in bf16";
  if (step.args.n < kLeastColumns) return "windows in front of fewer than 64 columns";
  if (step.args.k * kernels::element_bytes(type) > kernels::kMostTileTail)
    return "windows of more than 2048 bytes";
  if (sees_one_pixel(step))
    return w.channels >= kManyChannels ? "" : "windows of one pixel with fewer than 64 channels";
  const bool is_first = w.channels <= kFewChannels && w.window_height <= kMostLines;
  return is_first ? "" : "windows of many pixels behind the first layer, or of more than 5 lines";
}

// The source and the weights, in the type that the tiles multiply.
void read_channels_last(const ConvSite& site, ElementType type, GemmStep* step) {
  Lowering& lowering = site.lowering;
  const int source = site.node().inputs[0];
  if (type == ElementType::kBf16) {
    step->src = lowering.read(source, type, channels_last_strides(site.dims(source)));
    step->weights.view = real_weights(lowering, step->weights.view);
  } else {
    step->src = quantized_channels_last(lowering, source);
  }
  add_weights(lowering, site.epilogue, step);
}

void build_gathered(const ConvSite& site, ElementType type, GemmStep step, GemmEpilogue taken) {
  read_channels_last(site, type, &step);
  build_tile_step(site.lowering, step, std::move(taken));
}

// In 100 shapes of 32, 64 and 96 columns 1.4x as fast as oneDNN and its reorder; with strides,
// windows of 5 to 7 pixels a line over 3 or 4 channels 1.4x in 65 shapes, over one channel 0.6x
// to 1.1x (kinds first and wide). Others side by side, columns that do not fill panels and lines
// shorter than a tile 0.3x to 1.1x (onednn/convolutions.py of tests/bench).
bool are_planes_fast_in_bf16(const GemmStep& step) {
  constexpr int64_t kMostTaps = 16, kMostTapsInStrideOne = 4, kWide = 5, kLeastWidth = 16;
  constexpr int64_t kLeastChannelsOfWide = 3;
  const kernels::ConvWindows& w = step.args.a.windows;
  if (w.out_width < kLeastWidth || step.args.n % kernels::kTilePanel != 0) return false;
  const int64_t taps = w.window_height * w.window_width;
  if (w.stride_y * w.stride_x == 1) return taps <= kMostTapsInStrideOne && w.window_width < kWide;
  const bool is_wide = w.window_width >= kWide || taps > kMostTaps;
  return !is_wide || w.channels >= kLeastChannelsOfWide;
}

std::string why_not_planes(const ConvSite& site, const Start& begun) {
  constexpr int64_t kLeastPlaces = 1024;
  const GemmStep& step = begun.step;
  const View& src = site.lowering.view(site.node().inputs[0]);
  const kernels::ConvWindows& w = step.args.a.windows;
  if (begun.type == ElementType::kBf16 && !is_real_type(src.type))
    return "planes of neither f32 nor bf16";
  if (!step.args.a.has_windows) return "windows of one pixel each";
  if (!same_strides(src.dims, src.strides, row_major_strides(src.dims)))
    return "the source is no planes";
  if (step.args.n < kernels::kTilePanel) return "fewer than 32 columns";
  if (step.args.m < kLeastPlaces) return "fewer than 1024 places";
  if (begun.type == ElementType::kBf16 && !are_planes_fast_in_bf16(step))
    return "in bf16, large windows side by side or of one channel, short lines or unfit columns";
  if (!kernels::takes_tile_lines(kernels::tile_lines(w, w.channels, src.type)))
    return "more than 4 channels, dilated, or windows that are too large";
  return {};
}

void build_planes(const ConvSite& site, ElementType type, GemmStep step, GemmEpilogue taken) {
  Lowering& lowering = site.lowering;
  const int source = site.node().inputs[0];
  const bool is_real = type == ElementType::kBf16;
  step.src = lowering.read_stored(source, row_major_strides(site.dims(source)),
                                  is_real ? lowering.view(source).type : type);
  if (is_real) step.weights.view = real_weights(lowering, step.weights.view);
  add_weights(lowering, site.epilogue, &step);
  const kernels::ConvWindows& w = step.args.a.windows;
  const kernels::TileLines lines = kernels::tile_lines(w, w.channels, step.src.type);
  build_tile_step(lowering, step, std::move(taken), {.lines = &lines});
}

kernels::TileTaps taps_of(const GemmStep& step, ElementType type) {
  const kernels::ConvWindows& w = step.args.a.windows;
  return kernels::tile_taps(w, w.channels * kernels::element_bytes(type));
}

// In 44 shapes of 3x3 1.14x as fast as oneDNN, the slowest 0.91x; larger windows, few channels and
// columns that do not fill panels 0.6x to 1.2x (onednn/convolutions.py of tests/bench).
bool is_fast_in_bf16(const GemmStep& step) {
  constexpr int64_t kLeastChannels = 64, kLeastColumns = 64, kMostTaps = 9;
  const kernels::ConvWindows& w = step.args.a.windows;
  const int64_t taps = w.window_height * w.window_width;
  return taps > 1 && taps <= kMostTaps && w.channels >= kLeastChannels &&
         step.args.n >= kLeastColumns && step.args.n % kernels::kTilePanel == 0;
}

std::string why_not_taps(const Start& begun) {
  const GemmStep& step = begun.step;
  if (!step.args.a.has_windows) return "windows of one pixel each";
  if (step.args.n < kernels::kTilePanel) return "fewer than 32 columns";
  if (sees_one_pixel(step) && why_not_gather(step, begun.type).empty())
    return "windows of one pixel, which are gathered faster";
  if (begun.type == ElementType::kBf16 && !is_fast_in_bf16(step))
    return "in bf16, one pixel or more than 9, fewer than 64 channels or unfit columns";
  if (!kernels::takes_tile_taps(taps_of(step, begun.type)))
    return "pixels of no whole steps of 64 bytes, or windows or padding that are too large";
  return {};
}

void build_taps(const ConvSite& site, ElementType type, GemmStep step, GemmEpilogue taken) {
  read_channels_last(site, type, &step);
  const kernels::TileTaps taps = taps_of(step, type);
  build_tile_step(site.lowering, step, std::move(taken), {.taps = &taps});
}

}  // namespace

// Measured over 23 geometries: 1.0x to 2.1x as fast as oneDNN, with fewer columns or places 0.4x to
// 0.9x (tests/bench/README.md).
Offer offer_tile_planes(const ConvSite& site) {
  const Start begun = start(site);
  if (!begun.why_not.empty()) return refused(begun.why_not);
  if (std::string why = why_not_planes(site, begun); !why.empty()) return refused(std::move(why));
  return offer(site, begun, build_planes);
}

// Measured over 27 geometries in int8: 1.0x to 2.6x as fast as oneDNN (tests/bench/README.md).
// Windows of one pixel take 1.3x as long as gathered, over 390 shapes with strides of 2 and 3
// (onednn_kernels_bench --benchmark_filter=strided_pixels has some of them).
Offer offer_tile_taps(const ConvSite& site) {
  const Start begun = start(site);
  if (!begun.why_not.empty()) return refused(begun.why_not);
  if (std::string why = why_not_taps(begun); !why.empty()) return refused(std::move(why));
  return offer(site, begun, build_taps);
}

// One pixel in bf16: over 69 shapes 1.18x as fast as oneDNN, over 68 with a residual 1.17x, least
// 0.79x; in front of fewer channels or columns 0.5x to 1.3x (onednn/convolutions.py).
bool are_pixels_fast_in_bf16(const GemmStep& step) {
  constexpr int64_t kLeastChannels = 256, kLeastColumns = 64;
  constexpr int64_t kFewPlaces = 300, kManyColumns = 256;
  if (step.args.k < kLeastChannels || step.args.n % kernels::kTilePanel != 0) return false;
  return step.args.n >= (step.args.m < kFewPlaces ? kManyColumns : kLeastColumns);
}

Offer offer_tile_conv(const ConvSite& site) {
  const Start begun = start(site);
  if (!begun.why_not.empty()) return refused(begun.why_not);
  if (std::string why = why_not_rows(begun.step, begun.type); !why.empty())
    return refused(std::move(why));
  if (std::string why = why_not_gather(begun.step, begun.type); !why.empty())
    return refused(std::move(why));
  if (begun.type == ElementType::kBf16 && !are_pixels_fast_in_bf16(begun.step) &&
      !has_gelu(site.epilogue))
    return refused("one pixel in bf16 of few channels, or to few or unfit columns");
  return offer(site, begun, build_gathered);
}

}  // namespace tenon::onednn
