// SPDX-License-Identifier: Apache-2.0
// Softmax where lanes are rows of their own: over an axis behind which others lie, and of rows that
// are shorter than a register. Contract in ../softmax.h.

#include "elements.h"
#include "level.h"
#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int64_t kRegisters = 4;
static_assert(kRegisters * kLanes <= kSoftmaxColumns);
constexpr int64_t kColumns = kRegisters * kLanes;  // of a block, which lie side by side in a buffer
constexpr int64_t kChunk = 128;                    // elements of a column that the buffer holds

struct Block {
  const SoftmaxArgs& args;
  float* buffer;  // [chunk, kColumns]
  Vf top[kRegisters];
  Vf sum[kRegisters] = {};

  Block(const SoftmaxArgs& given, float* memory) : args(given), buffer(memory) {
    for (Vf& one : top)
      one = splat(-kInfinity);
  }

  void scale_and_raise_top(int64_t n) {
    for (int64_t r = 0; r < kRegisters; ++r) {
      float* column = buffer + r * kLanes;
      for (int64_t i = 0; i < n; ++i) {
        const Vf x = load(column + i * kColumns) * args.scale;
        store(column + i * kColumns, x);
        top[r] = max_fast(x, top[r]);
      }
    }
  }

  // The exponentials replace x, except for LogSoftmax.
  template <class Exp>
  void add_exponentials(int64_t n, const Exp& exp) {
    for (int64_t r = 0; r < kRegisters; ++r) {
      float* column = buffer + r * kLanes;
      for (int64_t i = 0; i < n; ++i) {
        const Vf e = exp(load(column + i * kColumns) - top[r]);
        if (!args.log) store(column + i * kColumns, e);
        sum[r] += e;
      }
    }
  }
  void add_exponentials(int64_t n) {
    if (args.dst.type == ElementType::kBf16 && !args.log)
      return add_exponentials(n, [](Vf x) { return short_exp_nonpositive(x); });
    add_exponentials(n, [](Vf x) { return exp_nonpositive(x); });
  }

  // `sums`: of whole columns. LogSoftmax subtracts twice, so that a large maximum cannot round the
  // small logarithm away.
  void finish(int64_t n, const Vf* sums) {
    for (int64_t r = 0; r < kRegisters; ++r) {
      float* column = buffer + r * kLanes;
      const Vf first = args.log ? top[r] : Vf{};
      const Vf second = args.log ? log(sums[r]) : Vf{};
      const Vf factor = args.log ? splat(1.0F) : splat(1.0F) / sums[r];
      for (int64_t i = 0; i < n; ++i) {
        const Vf x = load(column + i * kColumns);
        store(column + i * kColumns, (x - first - second) * factor);
      }
    }
  }
};

// `count` columns whose elements lie args.inner apart, the first at `offset`.
void columns(const SoftmaxArgs& args, int64_t offset, int64_t count, float* buffer) {
  Block block(args, buffer);
  const int64_t inner = args.inner;
  auto each_chunk = [&](const auto& body) {
    for (int64_t at = 0; at < args.n; at += kChunk)
      body(at, args.n - at < kChunk ? args.n - at : kChunk);
  };
  auto read = [&](int64_t at, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      load_f32(args.src, offset + (at + i) * inner, count, buffer + i * kColumns);
  };
  auto write = [&](int64_t at, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      store_f32(buffer + i * kColumns, count, args.dst, offset + (at + i) * inner, false);
  };
  if (args.n <= kChunk) {
    read(0, args.n);
    block.scale_and_raise_top(args.n);
    block.add_exponentials(args.n);
    block.finish(args.n, block.sum);
    return write(0, args.n);
  }
  each_chunk([&](int64_t at, int64_t n) {
    read(at, n);
    block.scale_and_raise_top(n);
  });
  Vf sums[kRegisters];
  each_chunk([&](int64_t at, int64_t n) {
    read(at, n);
    block.scale_and_raise_top(n);
    block.add_exponentials(n);
  });
  for (int64_t r = 0; r < kRegisters; ++r)
    sums[r] = block.sum[r];
  each_chunk([&](int64_t at, int64_t n) {
    read(at, n);
    block.scale_and_raise_top(n);
    block.add_exponentials(n);
    block.finish(n, sums);
    write(at, n);
  });
}

// Rows that lie side by side, as columns of the buffer and back.
void to_columns(const float* rows, int64_t count, int64_t n, float* buffer) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < count; ++r)
      buffer[i * kColumns + r] = rows[r * n + i];
}

void to_rows(const float* buffer, int64_t count, int64_t n, float* rows) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < count; ++r)
      rows[r * n + i] = buffer[i * kColumns + r];
}

}  // namespace

void softmax_columns(const SoftmaxArgs& args, int64_t lo, int64_t hi) {
  alignas(64) float buffer[kChunk * kColumns] = {};
  const int64_t n_blocks = (args.inner + kSoftmaxColumns - 1) / kSoftmaxColumns;
  for (int64_t piece = lo; piece < hi; ++piece) {
    const int64_t outer = piece / n_blocks * args.n * args.inner;
    const int64_t begin = piece % n_blocks * kSoftmaxColumns;
    const int64_t end = begin + kSoftmaxColumns < args.inner ? begin + kSoftmaxColumns : args.inner;
    for (int64_t c = begin; c < end; c += kColumns)
      columns(args, outer + c, end - c < kColumns ? end - c : kColumns, buffer);
  }
}

void softmax_narrow_rows(const SoftmaxArgs& args, int64_t lo, int64_t hi) {
  alignas(64) float buffer[kSoftmaxNarrow * kColumns] = {};
  alignas(64) float rows[kSoftmaxNarrow * kColumns];
  const int64_t n = args.n;
  for (int64_t at = lo; at < hi; at += kColumns) {
    const int64_t count = hi - at < kColumns ? hi - at : kColumns;
    load_f32(args.src, at * n, count * n, rows);
    to_columns(rows, count, n, buffer);
    Block block(args, buffer);
    block.scale_and_raise_top(n);
    block.add_exponentials(n);
    block.finish(n, block.sum);
    to_rows(buffer, count, n, rows);
    store_f32(rows, count * n, args.dst, at * n, false);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
