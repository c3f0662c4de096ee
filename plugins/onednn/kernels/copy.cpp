// SPDX-License-Identifier: Apache-2.0
// Orders and merges the dimensions of a copy and chooses how its rows move.

#include "copy.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "kernel_table.h"
#include "numbers.h"

namespace tenon::onednn::kernels {

namespace {

struct Axis {
  int64_t n;
  int64_t src;  // strides in elements
  int64_t dst;
};

// At most 8 axes, from the largest to the smallest dst stride; the last is the innermost.
struct Axes {
  Axis axis[kCopyMaxRank];
  int64_t rank = 0;
  int64_t count = 1;
};

Axes merge(const StridedCopy& copy) {
  Axes in;
  for (int64_t d = 0; d < copy.rank; ++d) {
    in.count *= copy.dims[d];
    if (copy.dims[d] == 1) continue;
    in.axis[in.rank++] = {copy.dims[d], copy.src_strides[d], copy.dst_strides[d]};
  }
  std::stable_sort(in.axis, in.axis + in.rank,
                   [](const Axis& a, const Axis& b) { return a.dst > b.dst; });
  Axes out;
  out.count = in.count;
  for (int64_t d = 0; d < in.rank; ++d) {
    const Axis& next = in.axis[d];
    Axis* last = out.rank > 0 ? &out.axis[out.rank - 1] : nullptr;
    if (last != nullptr && last->src == next.src * next.n && last->dst == next.dst * next.n) {
      *last = {last->n * next.n, next.src, next.dst};
    } else {
      out.axis[out.rank++] = next;
    }
  }
  if (out.rank == 0) out.axis[out.rank++] = {1, 1, 1};
  return out;
}

struct Offsets {
  int64_t src = 0;
  int64_t dst = 0;
};

// Where the piece with this number begins, the innermost axis counted first.
Offsets offsets_of(const Axes& axes, int64_t piece) {
  Offsets at;
  for (int64_t d = axes.rank - 1; d >= 0; --d) {
    const int64_t index = piece % axes.axis[d].n;
    at.src += index * axes.axis[d].src;
    at.dst += index * axes.axis[d].dst;
    piece /= axes.axis[d].n;
  }
  return at;
}

const char* src_at(const StridedCopy& copy, int64_t offset) {
  return static_cast<const char*>(copy.src) + offset * copy.element_bytes;
}
char* dst_at(const StridedCopy& copy, int64_t offset) {
  return static_cast<char*>(copy.dst) + offset * copy.element_bytes;
}

// With a known stride the compiler packs vectors.
template <class T, int64_t stride>
void pick_elements(const char* src, char* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(dst + i * static_cast<int64_t>(sizeof(T)),
                src + i * stride * static_cast<int64_t>(sizeof(T)), sizeof(T));
  }
}

template <class T>
void copy_elements(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n) {
  if (dst_stride == 1) {
    if (src_stride == 2) return pick_elements<T, 2>(src, dst, n);
    if (src_stride == 3) return pick_elements<T, 3>(src, dst, n);
    if (src_stride == 4) return pick_elements<T, 4>(src, dst, n);
  }
  if (src_stride == 0 && dst_stride == 1) {
    T repeated;
    std::memcpy(&repeated, src, sizeof(T));
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(dst + i * static_cast<int64_t>(sizeof(T)), &repeated, sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(dst + i * dst_stride * static_cast<int64_t>(sizeof(T)),
                src + i * src_stride * static_cast<int64_t>(sizeof(T)), sizeof(T));
  }
}

void copy_elements(const StridedCopy& copy, Offsets at, const Axis& row) {
  const char* src = src_at(copy, at.src);
  char* dst = dst_at(copy, at.dst);
  visit_width(copy.element_bytes,
              [&]<class T>() { copy_elements<T>(src, row.src, dst, row.dst, row.n); });
}

template <size_t bytes>
void copy_blocks(const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(dst + i * dst_step, src + i * src_step, bytes);
}

// Dense rows of so many bytes, steps in bytes; a few bytes are not worth a call each.
void copy_dense(
    const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t n, int64_t bytes) {
  switch (bytes) {
    case 4:
      return copy_blocks<4>(src, src_step, dst, dst_step, n);
    case 8:
      return copy_blocks<8>(src, src_step, dst, dst_step, n);
    case 12:
      return copy_blocks<12>(src, src_step, dst, dst_step, n);
    case 16:
      return copy_blocks<16>(src, src_step, dst, dst_step, n);
    default:
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(dst + i * dst_step, src + i * src_step, static_cast<uint64_t>(bytes));
  }
}

// `next` are neighbouring rows: they are walked inside of a row that is short, and shorter than
// they are many.
void copy_rows_of(const StridedCopy& copy, Offsets at, const Axis& row, const Axis& next) {
  const int64_t bytes = copy.element_bytes;
  if ((row.src == 1 && row.dst == 1) || row.n == 1) {
    return copy_dense(src_at(copy, at.src), next.src * bytes, dst_at(copy, at.dst),
                      next.dst * bytes, next.n, row.n * bytes);
  }
  constexpr int64_t kShort = 12;
  const bool is_short = row.n < std::min(next.n, kShort);
  const Axis& outer = is_short ? row : next;
  for (int64_t i = 0; i < outer.n; ++i, at.src += outer.src, at.dst += outer.dst)
    copy_elements(copy, at, is_short ? next : row);
}

// The innermost axis is contiguous on both sides, or on neither in a way that tiles would help.
void copy_by_rows(const Context& context, const StridedCopy& copy, const Axes& axes) {
  Axes outer = axes;
  const Axis row = outer.axis[--outer.rank];
  const bool is_dense = (row.src == 1 && row.dst == 1) || row.n == 1;
  const int64_t bytes = row.n * copy.element_bytes;
  if (is_dense && outer.rank == 0) {  // one block: cut anywhere
    return parallel_for(context.parallel, bytes, grain_rows(2), [&](int64_t lo, int64_t hi) {
      std::memcpy(static_cast<char*>(copy.dst) + lo, static_cast<const char*>(copy.src) + lo,
                  static_cast<uint64_t>(hi - lo));
    });
  }
  if (outer.rank == 0) {
    return parallel_for(
        context.parallel, row.n, grain_rows(copy.element_bytes * 2), [&](int64_t lo, int64_t hi) {
          copy_elements(copy, {lo * row.src, lo * row.dst}, {hi - lo, row.src, row.dst});
        });
  }
  parallel_for(context.parallel, axes.count / row.n, grain_rows(bytes * 2),
               [&](int64_t lo, int64_t hi) {
                 Axis next = outer.axis[outer.rank - 1];
                 const int64_t in_next = next.n;
                 for (int64_t piece = lo; piece < hi; piece += next.n) {
                   next.n = std::min(in_next - piece % in_next, hi - piece);
                   copy_rows_of(copy, offsets_of(outer, piece), row, next);
                 }
               });
}

// dst's innermost axis is contiguous, and so is another axis in src: blocks of both go through
// registers. A block is 64 x 64 elements at most, so that both sides' lines stay in L1.
void copy_by_tiles(const Context& context,
                   const StridedCopy& copy,
                   const Axes& axes,
                   int64_t src_axis) {
  constexpr int64_t kSide = 64;
  Axes outer = axes;
  const Axis rows = outer.axis[axes.rank - 1];
  const Axis cols = outer.axis[src_axis];
  for (int64_t d = src_axis; d + 1 < axes.rank - 1; ++d)
    outer.axis[d] = outer.axis[d + 1];
  outer.rank -= 2;
  const int64_t row_blocks = (rows.n + kSide - 1) / kSide;
  const int64_t col_blocks = (cols.n + kSide - 1) / kSide;
  const int64_t pieces = axes.count / rows.n / cols.n * row_blocks * col_blocks;
  const int64_t bytes = std::min(kSide, rows.n) * std::min(kSide, cols.n) * copy.element_bytes * 2;
  parallel_for(context.parallel, pieces, grain_rows(bytes), [&](int64_t lo, int64_t hi) {
    for (int64_t piece = lo; piece < hi; ++piece) {
      const int64_t row = piece % row_blocks * kSide;
      const int64_t col = piece / row_blocks % col_blocks * kSide;
      const Offsets at = offsets_of(outer, piece / row_blocks / col_blocks);
      context.table->transpose_tile({src_at(copy, at.src + row * rows.src + col),
                                     dst_at(copy, at.dst + col * cols.dst + row), rows.src,
                                     cols.dst, std::min(kSide, rows.n - row),
                                     std::min(kSide, cols.n - col), copy.element_bytes});
    }
  });
}

// So many rows, `row_stride` apart, element by element in turn, and the reverse: n of each.
template <class T, int64_t n_rows>
void interleave(const T* src, int64_t row_stride, int64_t n, T* dst) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t row = 0; row < n_rows; ++row)
      dst[i * n_rows + row] = src[row * row_stride + i];
}
template <class T, int64_t n_rows>
void separate(const T* src, int64_t row_stride, int64_t n, T* dst) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t row = 0; row < n_rows; ++row)
      dst[row * row_stride + i] = src[i * n_rows + row];
}

// Pixels of two or three channels, as pixels on one side and as planes on the other.
struct Pixels {
  Axes outer;
  Axis along = {};
  int64_t n_channels = 0;
  int64_t plane = 0;  // from one plane to the next
  bool to_pixels = false;
};
std::optional<Pixels> find_pixels(const Axes& axes, int64_t element_bytes) {
  Pixels found{.outer = axes};
  const Axis last = found.outer.axis[--found.outer.rank];
  if (last.dst != 1 || axes.rank < 2) return std::nullopt;
  const auto has_channels = [](int64_t n) { return n == 2 || n == 3; };
  const Axis& next = axes.axis[axes.rank - 2];
  found.to_pixels = has_channels(last.n) && next.src == 1 && next.dst == last.n;
  if (found.to_pixels) {
    --found.outer.rank;
    found.along = next;
    found.n_channels = last.n;
    found.plane = last.src;
    return found;
  }
  // Planes of 32 bits are picked one after the other in less time.
  const int64_t most = element_bytes == 4 ? 2 : 3;
  for (int64_t d = 0; d < found.outer.rank; ++d) {
    const Axis axis = found.outer.axis[d];
    if (axis.src != 1 || axis.n != last.src || !has_channels(axis.n) || axis.n > most) continue;
    std::copy(found.outer.axis + d + 1, found.outer.axis + found.outer.rank, found.outer.axis + d);
    --found.outer.rank;
    found.along = last;
    found.n_channels = axis.n;
    found.plane = axis.dst;
    return found;
  }
  return std::nullopt;
}

void copy_pixels(const Context& context, const StridedCopy& copy, const Pixels& p, int64_t count) {
  constexpr int64_t kPixels = 4096;  // of one piece
  const int64_t n_pieces = (p.along.n + kPixels - 1) / kPixels;
  const int64_t n = count / p.n_channels / p.along.n * n_pieces;
  const int64_t bytes = std::min(kPixels, p.along.n) * p.n_channels * copy.element_bytes * 2;
  visit_width(copy.element_bytes, [&]<class T>() {
    const auto move = p.to_pixels ? (p.n_channels == 2 ? interleave<T, 2> : interleave<T, 3>)
                                  : (p.n_channels == 2 ? separate<T, 2> : separate<T, 3>);
    parallel_for(context.parallel, n, grain_rows(bytes), [&](int64_t lo, int64_t hi) {
      for (int64_t piece = lo; piece < hi; ++piece) {
        const int64_t first = piece % n_pieces * kPixels;
        const Offsets at = offsets_of(p.outer, piece / n_pieces);
        move(static_cast<const T*>(copy.src) + at.src + first * p.along.src, p.plane,
             std::min(kPixels, p.along.n - first),
             static_cast<T*>(copy.dst) + at.dst + first * p.along.dst);
      }
    });
  });
}

template <class T>
void repeat_as(const void* src, int64_t n, int64_t times, void* dst) {
  const T* const from = static_cast<const T*>(src);
  T* const to = static_cast<T*>(dst);
  // With a known number of times the compiler shuffles vectors.
  auto repeat = [&](auto known) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < known.value; ++k)
        to[i * known.value + k] = from[i];
  };
  if (times == 2) return repeat(std::integral_constant<int64_t, 2>{});
  if (times == 3) return repeat(std::integral_constant<int64_t, 3>{});
  if (times == 4) return repeat(std::integral_constant<int64_t, 4>{});
  for (int64_t i = 0; i < n; ++i)
    std::fill_n(to + i * times, times, from[i]);
}

// The innermost axis repeats what lies side by side on both sides.
void copy_repeated(const Context& context, const StridedCopy& copy, const Axes& axes) {
  Axes outer = axes;
  const int64_t times = outer.axis[--outer.rank].n;
  const int64_t n = outer.axis[--outer.rank].n;
  constexpr int64_t kPiece = 4096;  // elements of the source
  const int64_t in_row = (n + kPiece - 1) / kPiece;
  parallel_for(context.parallel, axes.count / (n * times) * in_row,
               grain_rows(std::min(n, kPiece) * (times + 1) * copy.element_bytes),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t piece = lo; piece < hi; ++piece) {
                   const Offsets at = offsets_of(outer, piece / in_row);
                   const int64_t first = piece % in_row * kPiece;
                   repeat_elements(src_at(copy, at.src + first), std::min(kPiece, n - first), times,
                                   copy.element_bytes, dst_at(copy, at.dst + first * times));
                 }
               });
}

constexpr int64_t kMirrorTile = 64;

// Tiles (row, row) to (row, last).
void mirror_tile_row(const Context& context, char* square, int64_t bytes, int64_t n, int64_t tile) {
  const int64_t row = tile * kMirrorTile;
  const int64_t rows = std::min(kMirrorTile, n - row);
  for (int64_t i = row; i < row + rows; ++i)
    for (int64_t j = row; j < i; ++j)
      std::memcpy(square + (i * n + j) * bytes, square + (j * n + i) * bytes,
                  static_cast<uint64_t>(bytes));
  for (int64_t column = row + rows; column < n; column += kMirrorTile) {
    context.table->transpose_tile({square + (row * n + column) * bytes,
                                   square + (column * n + row) * bytes, n, n, rows,
                                   std::min(kMirrorTile, n - column), bytes});
  }
}

}  // namespace

void repeat_elements(const void* src, int64_t n, int64_t times, int64_t element_bytes, void* dst) {
  visit_width(element_bytes, [&]<class T>() { repeat_as<T>(src, n, times, dst); });
}

// The first row of tiles is the longest, the last the shortest: they are done together, and so on
// inwards.
void mirror_upper(const Context& context, void* square, int64_t element_bytes, int64_t n) {
  const int64_t tiles = (n + kMirrorTile - 1) / kMirrorTile;
  const int64_t bytes = (tiles + 1) * kMirrorTile * kMirrorTile * element_bytes * 2;
  char* data = static_cast<char*>(square);
  parallel_for(context.parallel, (tiles + 1) / 2, grain_rows(bytes), [&](int64_t lo, int64_t hi) {
    for (int64_t tile = lo; tile < hi; ++tile) {
      const int64_t opposite = tiles - 1 - tile;
      mirror_tile_row(context, data, element_bytes, n, tile);
      if (opposite != tile) mirror_tile_row(context, data, element_bytes, n, opposite);
    }
  });
}

void strided_copy(const Context& context, const StridedCopy& copy) {
  const Axes axes = merge(copy);
  if (axes.count <= 0) return;
  if (const std::optional<Pixels> pixels = find_pixels(axes, copy.element_bytes))
    return copy_pixels(context, copy, *pixels, axes.count);
  const Axis& inner = axes.axis[axes.rank - 1];
  if (inner.src == 0 && inner.dst == 1 && axes.rank > 1) {
    const Axis& next = axes.axis[axes.rank - 2];
    if (next.src == 1 && next.dst == inner.n) return copy_repeated(context, copy, axes);
  }
  if (inner.src != 0 && inner.src != 1 && inner.dst == 1) {  // a repeated one fills its row
    // What is interleaved of few rows is picked apart faster than in tiles.
    const bool is_picked = inner.src == 3 || (inner.src == 4 && copy.element_bytes <= 2);
    for (int64_t d = 0; d + 1 < axes.rank && !is_picked; ++d) {
      if (axes.axis[d].src == 1 && axes.axis[d].n > 2) return copy_by_tiles(context, copy, axes, d);
    }
  }
  copy_by_rows(context, copy, axes);
}

void copy_rows(const Context& context,
               const void* src,
               int64_t src_pitch,
               void* dst,
               int64_t dst_pitch,
               int64_t row_bytes,
               int64_t rows) {
  strided_copy(context, {src, dst, 1, 2, {rows, row_bytes}, {src_pitch, 1}, {dst_pitch, 1}});
}

}  // namespace tenon::onednn::kernels
