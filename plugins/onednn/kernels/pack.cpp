// SPDX-License-Identifier: Apache-2.0
#include "pack.h"

#include <algorithm>
#include <cstring>

#include "copy_args.h"
#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace {

// Outputs are neighbours: `rows` rows of a block are moved, or zipped in pairs.
void pack_rows(
    const KernelTable& table, const PackArgs& args, const float* src, char* dst, int64_t rows) {
  if (args.type == ElementType::kF32) {
    const int64_t bytes = args.block * static_cast<int64_t>(sizeof(float));
    for (int64_t i = 0; i < rows; ++i)
      std::memcpy(dst + i * bytes, src + i * args.src_in, static_cast<size_t>(bytes));
    return;
  }
  uint32_t* pairs = reinterpret_cast<uint32_t*>(dst);
  for (int64_t i = 0; i < rows; i += 2, pairs += args.block)
    table.pair_bf16(src + i * args.src_in, src + (i + 1) * args.src_in, args.block, pairs);
}

// Rows lie too far apart for the CPU to see what is read next.
void fetch_ahead(const float* src, int64_t n) {
  constexpr int64_t kLine = 64 / sizeof(float);
  for (int64_t i = 0; i < n; i += kLine)
    __builtin_prefetch(src + i);
}

// Inputs are neighbours: a block is transposed, in bf16 by pairs of numbers.
void pack_columns(const KernelTable& table, const PackArgs& args, const float* src, char* dst) {
  if (args.type == ElementType::kF32) {
    return table.transpose_tile({src, dst, args.src_out, args.block, args.block, args.in, 4});
  }
  constexpr int64_t kColumns = 256;
  constexpr int64_t kAhead = 2;
  alignas(64) uint32_t rounded[kMostPackBlock * kColumns / 2];
  uint32_t* pairs = reinterpret_cast<uint32_t*>(dst);
  for (int64_t i = 0; i < args.in; i += kColumns) {
    const int64_t n = std::min(kColumns, args.in - i);
    for (int64_t row = 0; row < args.block; ++row) {
      const Target to{rounded + row * kColumns / 2, ElementType::kBf16};
      if (row + kAhead < args.block) fetch_ahead(src + (row + kAhead) * args.src_out + i, n);
      table.store_f32(src + row * args.src_out + i, n, to, 0, false);
    }
    table.transpose_tile(
        {rounded, pairs + i / 2 * args.block, kColumns / 2, args.block, args.block, n / 2, 4});
  }
}

struct Piece {
  const float* src;
  char* dst;
};

Piece piece_of(const PackArgs& args, int64_t block, int64_t place) {
  return {args.src + block * args.block * args.src_out + place * args.src_spatial,
          static_cast<char*>(args.dst) +
              (block * args.dst_block + place * args.dst_spatial) * element_bytes(args.type)};
}

}  // namespace

// Both walk through src in few streams: rows lie far apart, what is beside them is read next.
void pack(const Context& context, const PackArgs& args) {
  const int64_t in_bytes = args.block * element_bytes(args.type);
  const int64_t pieces = args.blocks * args.spatial;
  if (args.src_out == 1) {
    constexpr int64_t kRows = 16;
    return parallel_for(
        context.parallel, (args.in + kRows - 1) / kRows, grain_rows(pieces * kRows * in_bytes),
        [&](int64_t lo, int64_t hi) {
          for (int64_t i = lo * kRows; i < std::min(hi * kRows, args.in); i += kRows) {
            for (int64_t piece = 0; piece < pieces; ++piece) {
              const Piece p = piece_of(args, piece % args.blocks, piece / args.blocks);
              pack_rows(*context.table, args, p.src + i * args.src_in, p.dst + i * in_bytes,
                        std::min(kRows, args.in - i));
            }
          }
        });
  }
  parallel_for(context.parallel, pieces, grain_rows(args.in * in_bytes),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t piece = lo; piece < hi; ++piece) {
                   const Piece p = piece_of(args, piece / args.spatial, piece % args.spatial);
                   pack_columns(*context.table, args, p.src, p.dst);
                 }
               });
}

}  // namespace tenon::onednn::kernels
