// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products on AMX tiles (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1,
// chapter 18), for 8-bit operands and for bf16:
//
//   sum = sum_k a[m, k] * b[k, n]      i32 (wraps) for 8-bit operands, f32 for bf16
//   u8, s8, f32, bf16:  the epilogue of epilogue_args.h over sum + shifts[n]
//   i32 (8-bit operands alone):  sum + shifts[n]
//
// The left operand is read where it lies (what the windows of a convolution see is gathered block
// by block, at most kMostTileTail bytes a row; in front of few channels it is read from interleaved
// lines), the right one is packed once. A zero point of the
// left operand is part of `shifts`: -zero * sum_k b[k, n]. bf16 products flush denormals, whatever
// MXCSR says. The result does not depend on the number of threads.

#include "context.h"
#include "tile_product_args.h"

namespace tenon::onednn::kernels {

// Whether this CPU has tiles for 8-bit and bf16 operands and the operating system lets this process
// use them. Asks for the permission once (Linux: arch_prctl, ARCH_REQ_XCOMP_PERM).
bool has_tiles();

constexpr int64_t tile_columns(int64_t n) {
  return (n + kTilePanel - 1) / kTilePanel * kTilePanel;
}
constexpr int64_t tile_depth_bytes(ElementType type, int64_t k) {
  const int64_t bytes = k * element_bytes(type);
  return (bytes + kTileDepth - 1) / kTileDepth * kTileDepth;
}
constexpr int64_t packed_tile_bytes(ElementType type, int64_t k, int64_t n) {
  return tile_depth_bytes(type, k) * tile_columns(n);
}
// Rows that are no whole steps of k are copied on the stack before they are read.
constexpr bool takes_tile_rows(ElementType type, int64_t k) {
  const int64_t bytes = k * element_bytes(type);
  return k > 0 && (bytes % kTileDepth == 0 || bytes <= kMostTileTail);
}
// Whether threads divide the rows of a product, which are most of its data, and not its columns:
// then each finds in its own cache what it has made of the same rows before.
constexpr bool divides_tile_rows(int64_t m, int64_t n, int64_t k) {
  return m * (n + k) >= n * k;
}
// How tiles see the planes [channels, height, width] of an image, without gaps. Planes of f32 or
// bf16 are for products in bf16.
TileLines tile_lines(const Windows& windows, int64_t channels, ElementType source);
// The elements of k in a row.
inline int64_t tile_line_depth(const TileLines& lines) {
  return lines.steps * kTileDepth * kLineChannels / lines.pixel_bytes();
}
bool takes_tile_lines(const TileLines& lines);
// Which element [line, pixel, channel] of the window element k of a row is; kOutside: none, so that
// the right operand is zero there.
int64_t tile_line_element(const TileLines& lines, int64_t k);

// How they see channels-last images of many channels, in 8 bits or bf16; their rows are as those of
// TileRow::kWindow, which are gathered.
TileTaps tile_taps(const Windows& windows, int64_t pixel_bytes);
bool takes_tile_taps(const TileTaps& taps);

// b: element [k, n] at b[k * k_stride + n * n_stride]; what is not there is zero. type: of b, kS8
// or kBf16.
void pack_tiles(ElementType type,
                const void* b,
                int64_t k_stride,
                int64_t n_stride,
                int64_t k,
                int64_t n,
                void* packed);

// has_tiles() must hold, and takes_tile_rows() or that of lines or taps.
void tile_product(const Context& context, const TileProductArgs& args);

}  // namespace tenon::onednn::kernels
