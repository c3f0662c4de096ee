// SPDX-License-Identifier: Apache-2.0
// Softmax of rows; contract in ../softmax.h. A row goes through a buffer in L1: load, scale, mask
// and maximum; exponentials and their sum; scale and store.

#include "elements.h"
#include "level.h"
#include "vector_math.h"

extern "C" double log(double);

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int64_t kBlock = 4096;

// One row's f32 at `data`: in place where it is f32 already, else converted into `buffer`.
const float* row_f32(const Source& src, int64_t offset, int64_t n, float* buffer) {
  if (src.type == ElementType::kF32) return static_cast<const float*>(src.data) + offset;
  load_f32(src, offset, n, buffer);
  return buffer;
}

// scale * src + mask, a register at a time.
struct Row {
  const SoftmaxArgs& args;
  int64_t src_offset;
  int64_t mask_offset;

  // buffer[i] for i < n, -infinity up to a whole register; returns the maximum.
  float load_block(int64_t at, int64_t n, float* buffer) const {
    Vf top = splat(-kInfinity);
    each(at, n, buffer, [&](Vf x, int64_t i, int64_t lanes) {
      if (lanes < kLanes) x = keep_part(x, lanes, -kInfinity);
      store(buffer + i, x);
      top = max_fast(x, top);
    });
    return max_lanes(top);
  }

  // visit(x, i, lanes) for the numbers from `at` on; of the last register some lanes. buffer: for
  // n numbers that are converted.
  template <class Visit>
  void each(int64_t at, int64_t n, float* buffer, const Visit& visit) const {
    if (args.src.type == ElementType::kBf16)
      return each_of(static_cast<const Bf16*>(args.src.data) + src_offset + at, at, n, visit);
    each_of(row_f32(args.src, src_offset + at, n, buffer), at, n, visit);
  }

 private:
  template <class T, class Visit>
  void each_of(const T* src, int64_t at, int64_t n, const Visit& visit) const {
    alignas(64) float mask_buffer[kBlock];
    const Vf scale = splat(args.scale);
    if (args.mask.data == nullptr || args.mask_strides[3] == 0) {
      float value = 0.0F;
      if (args.mask.data != nullptr) load_f32(args.mask, mask_offset, 1, &value);
      const Vf added = splat(value);
      return scan(src, n, visit, [&](Vf x, int64_t, int64_t) { return fma(x, scale, added); });
    }
    const float* mask = row_f32(args.mask, mask_offset + at, n, mask_buffer);
    scan(src, n, visit,
         [&](Vf x, int64_t i, int64_t lanes) { return fma(x, scale, load_some(mask + i, lanes)); });
  }

  template <class T, class Visit, class F>
  static void scan(const T* src, int64_t n, const Visit& visit, const F& f) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      visit(f(load_lanes(src + i), i, kLanes), i, kLanes);
    if (i < n) visit(f(load_lanes_part(src + i, n - i), i, n - i), i, n - i);
  }
};

// The sum of exp(data[i] - top), which replace the data unless they are to be kept.
template <class Exp>
float exponentials(float* data, int64_t n, float top, bool keep, const Exp& exp) {
  Vf sum = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    Vf e = exp(load(data + i) - top);
    if (!keep) store(data + i, e);
    sum += e;
  }
  return sum_lanes(sum);
}

// What is stored in bf16 needs no more digits.
float exponentials(const SoftmaxArgs& args, float* data, int64_t n, float top, bool keep) {
  if (args.dst.type == ElementType::kBf16 && !args.log) {
    return exponentials(data, n, top, keep, [](Vf x) { return short_exp_nonpositive(x); });
  }
  return exponentials(data, n, top, keep, [](Vf x) { return exp_nonpositive(x); });
}

// y = (x - origin) * factor + shift. LogSoftmax subtracts twice, so that a large maximum cannot
// round the small logarithm away.
struct Finish {
  float origin;
  float factor;
  float shift;
};

template <class T>
void apply(const float* data, int64_t n, Finish f, T* dst) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store_lanes(dst + i, (load(data + i) - f.origin) * f.factor + f.shift);
  }
  if (i < n) store_lanes_part(dst + i, (load(data + i) - f.origin) * f.factor + f.shift, n - i);
}

void finish_block(const SoftmaxArgs& args, float* data, int64_t n, Finish f, int64_t offset) {
  if (args.dst.type == ElementType::kF32) {
    return apply(data, n, f, static_cast<float*>(args.dst.data) + offset);
  }
  if (args.dst.type == ElementType::kBf16) {
    return apply(data, n, f, static_cast<Bf16*>(args.dst.data) + offset);
  }
  apply(data, n, f, data);
  store_f32(data, n, args.dst, offset, false);
}

Finish make_finish(const SoftmaxArgs& args, float top, double sum) {
  if (args.log) return {top, 1.0F, static_cast<float>(-::log(sum))};
  return {0.0F, static_cast<float>(1.0 / sum), 0.0F};
}

// What a row waits for (its maximum, its sum) is hidden behind the other rows of a group.
constexpr int64_t kGroup = 4;

void short_rows(const Row* rows, int64_t count, float* buffer) {
  const SoftmaxArgs& args = rows[0].args;
  const int64_t pitch = (args.n + kLanes - 1) / kLanes * kLanes;
  float top[kGroup];
  float sum[kGroup];
  for (int64_t i = 0; i < count; ++i)
    top[i] = rows[i].load_block(0, args.n, buffer + i * pitch);
  for (int64_t i = 0; i < count; ++i)
    sum[i] = exponentials(args, buffer + i * pitch, args.n, top[i], args.log);
  for (int64_t i = 0; i < count; ++i) {
    Finish finish = make_finish(args, top[i], static_cast<double>(sum[i]));
    finish_block(args, buffer + i * pitch, args.n, finish, rows[i].src_offset);
  }
}

// Calls body(at, n) for each block of the row.
template <class F>
void each_block(const Row& row, const F& body) {
  const int64_t n = row.args.n;
  for (int64_t at = 0; at < n; at += kBlock)
    body(at, n - at < kBlock ? n - at : kBlock);
}

float top_of_row(const Row& row, float* buffer) {
  Vf top = splat(-kInfinity);
  each_block(row, [&](int64_t at, int64_t n) {
    row.each(at, n, buffer, [&](Vf x, int64_t, int64_t lanes) {
      top = max_fast(lanes < kLanes ? keep_part(x, lanes, -kInfinity) : x, top);
    });
  });
  return max_lanes(top);
}

// The result keeps the exponentials until their sum is known.
void long_row_of_f32(const Row& row, float* buffer) {
  float* const dst = static_cast<float*>(row.args.dst.data) + row.src_offset;
  const Vf top = splat(top_of_row(row, buffer));
  double sum = 0;
  each_block(row, [&](int64_t at, int64_t n) {
    Vf block = {};
    row.each(at, n, buffer, [&](Vf x, int64_t i, int64_t lanes) {
      const Vf e = exp_nonpositive(x - top);
      block += lanes < kLanes ? keep_part(e, lanes, 0.0F) : e;
      store_some(dst + at + i, e, lanes);
    });
    sum += static_cast<double>(sum_lanes(block));
  });
  apply(dst, row.args.n, make_finish(row.args, 0.0F, sum), dst);
}

// Read once for the maximum, once for the sum and once for the result.
void long_row(const Row& row, float* buffer) {
  const SoftmaxArgs& args = row.args;
  if (args.dst.type == ElementType::kF32 && !args.log) return long_row_of_f32(row, buffer);
  const float top = top_of_row(row, buffer);
  double sum = 0;
  each_block(row, [&](int64_t at, int64_t n) {
    row.load_block(at, n, buffer);
    sum += static_cast<double>(exponentials(args, buffer, n, top, true));
  });
  const Finish finish = make_finish(args, top, sum);
  each_block(row, [&](int64_t at, int64_t n) {
    row.load_block(at, n, buffer);
    if (!args.log) exponentials(args, buffer, n, top, false);
    finish_block(args, buffer, n, finish, row.src_offset + at);
  });
}

template <class T>
void grad_row(const T* y, const T* dy, int64_t n, float scale, T* dst) {
  const int64_t whole = n / kLanes * kLanes;
  const int64_t rest = n - whole;
  Vf sum = {};
  for (int64_t i = 0; i < whole; i += kLanes)
    sum = fma(load_lanes(y + i), load_lanes(dy + i), sum);
  if (rest > 0) sum = fma(load_lanes_part(y + whole, rest), load_lanes_part(dy + whole, rest), sum);
  const Vf mean = splat(sum_lanes(sum));
  for (int64_t i = 0; i < whole; i += kLanes)
    store_lanes(dst + i, load_lanes(y + i) * scale * (load_lanes(dy + i) - mean));
  if (rest == 0) return;
  const Vf last =
      load_lanes_part(y + whole, rest) * scale * (load_lanes_part(dy + whole, rest) - mean);
  store_lanes_part(dst + whole, last, rest);
}

}  // namespace

void softmax_grad_rows(const SoftmaxGradArgs& args, int64_t lo, int64_t hi) {
  auto rows = [&]<class T>(T* dst) {
    const T* const y = static_cast<const T*>(args.y.data);
    const T* const dy = static_cast<const T*>(args.dy.data);
    for (int64_t row = lo; row < hi; ++row)
      grad_row(y + row * args.n, dy + row * args.n, args.n, args.scale, dst + row * args.n);
  };
  if (args.dst.type == ElementType::kBf16)
    rows(static_cast<Bf16*>(args.dst.data));
  else
    rows(static_cast<float*>(args.dst.data));
}

void softmax_rows(const SoftmaxArgs& args, int64_t lo, int64_t hi) {
  alignas(64) float buffer[kBlock + kLanes];
  int64_t d2 = lo % args.dims[2];
  int64_t d1 = lo / args.dims[2] % args.dims[1];
  int64_t d0 = lo / args.dims[2] / args.dims[1];
  const bool is_short = args.n <= kBlock;
  const int64_t in_group = args.n <= kBlock / kGroup - kLanes ? kGroup : 1;
  for (int64_t r = lo; r < hi; r += in_group) {
    const int64_t count = hi - r < in_group ? hi - r : in_group;
    Row rows[kGroup] = {{args, 0, 0}, {args, 0, 0}, {args, 0, 0}, {args, 0, 0}};
    for (int64_t i = 0; i < count; ++i) {
      rows[i].src_offset = (r + i) * args.n;
      rows[i].mask_offset =
          d0 * args.mask_strides[0] + d1 * args.mask_strides[1] + d2 * args.mask_strides[2];
      if (++d2 < args.dims[2]) continue;
      d2 = 0;
      if (++d1 < args.dims[1]) continue;
      d1 = 0;
      ++d0;
    }
    is_short ? short_rows(rows, count, buffer) : long_row(rows[0], buffer);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
