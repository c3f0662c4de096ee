// SPDX-License-Identifier: Apache-2.0
#include "pack.h"

#include <algorithm>
#include <cstring>

#include "copy_args.h"
#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace {

// One block of outputs at one place, all of its inputs.
struct Piece {
  const float* src;
  char* dst;
  int64_t outputs;
};

Piece piece_of(const PackArgs& args, int64_t block, int64_t place) {
  return {args.src + block * args.block * args.src_out + place * args.src_spatial,
          static_cast<char*>(args.dst) +
              (block * args.dst_block + place * args.dst_spatial) * element_bytes(args.type),
          std::min(args.block, args.out - block * args.block)};
}

void clear(void* from, int64_t bytes) {
  if (bytes > 0) std::memset(from, 0, static_cast<size_t>(bytes));
}

// Outputs are neighbours: rows of a block are moved, or zipped in pairs.
void pack_rows(const KernelTable& table,
               const PackArgs& args,
               const Piece& piece,
               int64_t first,
               int64_t end) {
  static constexpr float kZeros[kMostPackBlock] = {};
  auto row = [&](int64_t i) { return i < args.in ? piece.src + i * args.src_in : kZeros; };
  constexpr int64_t kBytes = sizeof(float);  // of a number in f32, or of a pair in bf16
  const int64_t step = args.type == ElementType::kF32 ? 1 : 2;
  for (int64_t i = first; i < end; i += step) {
    char* const to = piece.dst + i / step * args.block * kBytes;
    if (step == 1)
      std::memcpy(to, row(i), static_cast<size_t>(piece.outputs * kBytes));
    else
      table.pair_bf16(row(i), row(i + 1), piece.outputs, reinterpret_cast<uint32_t*>(to));
    clear(to + piece.outputs * kBytes, (args.block - piece.outputs) * kBytes);
  }
}

// Rows lie too far apart for the CPU to see what is read next.
void fetch_ahead(const float* src, int64_t n) {
  constexpr int64_t kLine = 64 / sizeof(float);
  for (int64_t i = 0; i < n; i += kLine)
    __builtin_prefetch(src + i);
}

// Inputs are neighbours: a block is transposed, in bf16 by pairs of numbers.
void pack_columns(const KernelTable& table, const PackArgs& args, const Piece& piece) {
  const int64_t rows = piece.outputs;
  if (rows < args.block || args.padded_in > args.in)
    clear(piece.dst, args.padded_in * args.block * element_bytes(args.type));
  if (args.type == ElementType::kF32)
    return table.transpose_tile({piece.src, piece.dst, args.src_out, args.block, rows, args.in, 4});
  constexpr int64_t kColumns = 256;
  constexpr int64_t kAhead = 2;
  alignas(64) uint16_t rounded[kMostPackBlock * kColumns];
  uint32_t* pairs = reinterpret_cast<uint32_t*>(piece.dst);
  for (int64_t i = 0; i < args.in; i += kColumns) {
    const int64_t n = std::min(kColumns, args.in - i);
    for (int64_t row = 0; row < rows; ++row) {
      uint16_t* const to = rounded + row * kColumns;
      const float* const from = piece.src + row * args.src_out + i;
      if (row + kAhead < rows) fetch_ahead(from + kAhead * args.src_out, n);
      table.store_f32(from, n, {to, ElementType::kBf16}, 0, false);
      if (n % 2 != 0) to[n] = 0;
    }
    table.transpose_tile(
        {rounded, pairs + i / 2 * args.block, kColumns / 2, args.block, rows, (n + 1) / 2, 4});
  }
}

}  // namespace

// Both walk through src in few streams: rows lie far apart, what is beside them is read next.
void pack(const Context& context, const PackArgs& args) {
  const int64_t in_bytes = args.block * element_bytes(args.type);
  const int64_t blocks = args.blocks(), pieces = blocks * args.spatial;
  if (args.src_out == 1) {
    constexpr int64_t kRows = 16;
    return parallel_for(context.parallel, (args.padded_in + kRows - 1) / kRows,
                        grain_rows(pieces * kRows * in_bytes), [&](int64_t lo, int64_t hi) {
                          for (int64_t i = lo; i < hi; ++i)
                            for (int64_t piece = 0; piece < pieces; ++piece)
                              pack_rows(*context.table, args,
                                        piece_of(args, piece % blocks, piece / blocks), i * kRows,
                                        std::min((i + 1) * kRows, args.padded_in));
                        });
  }
  parallel_for(context.parallel, pieces, grain_rows(args.in * in_bytes),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t piece = lo; piece < hi; ++piece)
                   pack_columns(*context.table, args,
                                piece_of(args, piece / args.spatial, piece % args.spatial));
               });
}

}  // namespace tenon::onednn::kernels
