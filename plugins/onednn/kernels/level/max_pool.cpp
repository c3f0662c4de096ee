// SPDX-License-Identifier: Apache-2.0
// Maxima of windows of bytes; contract in ../max_pool.h. A piece of work is a row of results.

#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

// The pixels of a window that lie in the image.
struct Part {
  int64_t rows;
  int64_t columns;
  int64_t row_bytes;
  int64_t pixel_bytes;
};

template <class T>
void max_block(const T* src, const Part& part, T* dst) {
  using Block = typename VectorOf<T, kVectorBytes>::Type;
  Block largest;
  std::memcpy(&largest, src, sizeof largest);
  for (int64_t y = 0; y < part.rows; ++y) {
    const T* pixel = src + y * part.row_bytes;
    for (int64_t x = 0; x < part.columns; ++x, pixel += part.pixel_bytes) {
      Block next;
      std::memcpy(&next, pixel, sizeof next);
      largest = largest > next ? largest : next;
    }
  }
  std::memcpy(dst, &largest, sizeof largest);
}

// Fewer channels than a register has.
template <class T>
void max_few(const T* src, const Part& part, T* __restrict dst) {
  std::memcpy(dst, src, static_cast<uint64_t>(part.pixel_bytes));
  for (int64_t y = 0; y < part.rows; ++y) {
    const T* pixel = src + y * part.row_bytes;
    for (int64_t x = 0; x < part.columns; ++x, pixel += part.pixel_bytes)
      for (int64_t c = 0; c < part.pixel_bytes; ++c)
        dst[c] = pixel[c] > dst[c] ? pixel[c] : dst[c];
  }
}

template <class T>
void max_window(const T* src, const Part& part, T* dst) {
  const int64_t channels = part.pixel_bytes;
  if (channels < kVectorBytes) return max_few(src, part, dst);
  int64_t c = 0;
  for (; c + kVectorBytes <= channels; c += kVectorBytes)
    max_block(src + c, part, dst + c);
  // The last block overlaps the one before: a maximum may be taken twice.
  if (c < channels) max_block(src + channels - kVectorBytes, part, dst + channels - kVectorBytes);
}

struct Range {
  int64_t first;
  int64_t count;
};

Range inside(int64_t at, int64_t size, int axis, const MaxPoolArgs& args) {
  const int64_t start = at * args.stride[axis] - args.pad[axis];
  const int64_t first = start > 0 ? start : 0;
  const int64_t end = start + args.kernel[axis] < size ? start + args.kernel[axis] : size;
  return {first, end - first};
}

template <class T>
void run(const MaxPoolArgs& args, int64_t lo, int64_t hi) {
  const int64_t row_bytes = args.width * args.channels;
  T* dst = static_cast<T*>(args.dst) + lo * args.out_width * args.channels;
  for (int64_t row = lo; row < hi; ++row) {
    const Range y = inside(row % args.out_height, args.height, 0, args);
    const T* src = static_cast<const T*>(args.src) +
                   (row / args.out_height * args.height + y.first) * row_bytes;
    for (int64_t i = 0; i < args.out_width; ++i, dst += args.channels) {
      const Range x = inside(i, args.width, 1, args);
      max_window(src + x.first * args.channels, {y.count, x.count, row_bytes, args.channels}, dst);
    }
  }
}

}  // namespace

void max_pool_rows(const MaxPoolArgs& args, int64_t lo, int64_t hi) {
  args.is_signed ? run<int8_t>(args, lo, hi) : run<uint8_t>(args, lo, hi);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
