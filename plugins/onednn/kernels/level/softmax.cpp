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

// buffer[i] = scale * src + mask for i < n, -infinity up to a whole register; returns the maximum.
struct Row {
  const SoftmaxArgs& args;
  int64_t src_offset;
  int64_t mask_offset;

  float load_block(int64_t at, int64_t n, float* buffer) const {
    if (args.src.type == ElementType::kBf16) {
      return load_from(static_cast<const Bf16*>(args.src.data) + src_offset + at, at, n, buffer);
    }
    return load_from(row_f32(args.src, src_offset + at, n, buffer), at, n, buffer);
  }

  template <class T>
  float load_from(const T* src, int64_t at, int64_t n, float* buffer) const {
    alignas(64) float mask_buffer[kBlock];
    Vf scale = splat(args.scale);
    Vf top = splat(-kInfinity);
    if (args.mask.data == nullptr || args.mask_strides[3] == 0) {
      float value = 0.0F;
      if (args.mask.data != nullptr) load_f32(args.mask, mask_offset, 1, &value);
      top =
          combine(src, n, buffer, [&](Vf x, int64_t, bool) { return fma(x, scale, splat(value)); });
    } else {
      const float* mask = row_f32(args.mask, mask_offset + at, n, mask_buffer);
      top = combine(src, n, buffer, [&](Vf x, int64_t i, bool is_whole) {
        return fma(x, scale, is_whole ? load(mask + i) : load_part(mask + i, n - i, 0.0F));
      });
    }
    return max_lanes(top);
  }

  template <class T, class F>
  static Vf combine(const T* src, int64_t n, float* dst, const F& f) {
    Vf top = splat(-kInfinity);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      Vf x = f(load_lanes(src + i), i, true);
      store(dst + i, x);
      top = max_fast(x, top);
    }
    if (i < n) {
      const Vf x = keep_part(f(load_lanes_part(src + i, n - i), i, false), n - i, -kInfinity);
      store(dst + i, x);
      top = max_fast(x, top);
    }
    return top;
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

void long_row(const Row& row, float* buffer) {
  const SoftmaxArgs& args = row.args;
  float top = -kInfinity;
  auto each_block = [&](const auto& body) {
    for (int64_t at = 0; at < args.n; at += kBlock) {
      int64_t n = args.n - at < kBlock ? args.n - at : kBlock;
      body(at, n, row.load_block(at, n, buffer));
    }
  };
  each_block([&](int64_t, int64_t, float block_top) { top = block_top > top ? block_top : top; });
  double sum = 0;
  each_block([&](int64_t, int64_t n, float) {
    sum += static_cast<double>(exponentials(args, buffer, n, top, true));
  });
  Finish finish = make_finish(args, top, sum);
  each_block([&](int64_t at, int64_t n, float) {
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
