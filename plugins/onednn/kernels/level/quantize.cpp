// SPDX-License-Identifier: Apache-2.0
// Rows of floating-point numbers to 8-bit integers and back, requantization; contract in
// ../quantize.h.

#include "elements.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int64_t kBlock = 1024;

template <class T>
Vf get(const T* p, int count) {
  return count == kLanes ? load_lanes(p) : load_lanes_part(p, count);
}
template <class T>
void put(T* p, Vf v, int count) {
  if (count == kLanes) {
    store_lanes(p, v);
  } else {
    store_lanes_part(p, v, count);
  }
}
// A scale of the lanes past the end would be 0, and 0 / 0 raise an exception flag: 1 there.
Vf get_scale(const float* p, int count) {
  return count == kLanes ? load(p) : load_part(p, count, 1.0F);
}

// Unsigned, so that sums wrap.
Vu get_words(const int32_t* p, int count) {
  if (count == kLanes) return load_vector<Vu>(p);
  Vu v = {};
  for (int i = 0; i < count; ++i)
    v[i] = static_cast<uint32_t>(p[i]);
  return v;
}

// x: [n] f32; Q: the quantized type
template <class Q>
void quantize_block(
    const float* x, const QuantizeArgs& args, const QuantizeRow& row, int64_t at, int64_t n) {
  Q* dst = static_cast<Q*>(args.dst.data) + row.offset + at;
  const Q* zeros = static_cast<const Q*>(args.zero_points);
  const float* scales = args.scales + row.scale;
  if (row.per_element) {
    each_register(n, [&](int64_t i, int count) {
      Vf zero = zeros != nullptr ? get(zeros + row.scale + at + i, count) : Vf{};
      Vf scale = get_scale(scales + at + i, count);
      put(dst + i, round_even(get(x + i, count) / scale) + zero, count);
    });
    return;
  }
  Vf scale = splat(scales[0]);
  Vf zero = splat(zeros != nullptr ? static_cast<float>(zeros[row.scale]) : 0.0F);
  each_register(n, [&](int64_t i, int count) {
    put(dst + i, round_even(get(x + i, count) / scale) + zero, count);
  });
}

// dst: [n] f32
template <class Q>
void dequantize_block(
    const QuantizeArgs& args, const QuantizeRow& row, int64_t at, int64_t n, float* dst) {
  const Q* src = static_cast<const Q*>(args.src.data) + row.offset + at;
  const Q* zeros = static_cast<const Q*>(args.zero_points);
  const float* scales = args.scales + row.scale;
  if (row.per_element) {
    each_register(n, [&](int64_t i, int count) {
      Vf zero = zeros != nullptr ? get(zeros + row.scale + at + i, count) : Vf{};
      Vf scale = get_scale(scales + at + i, count);
      put(dst + i, (get(src + i, count) - zero) * scale, count);
    });
    return;
  }
  Vf scale = splat(scales[0]);
  Vf zero = splat(zeros != nullptr ? static_cast<float>(zeros[row.scale]) : 0.0F);
  each_register(
      n, [&](int64_t i, int count) { put(dst + i, (get(src + i, count) - zero) * scale, count); });
}

template <class Q>
void requantize(const RequantizeArgs& args, int64_t lo, int64_t hi) {
  Vf zero = splat(static_cast<float>(args.dst.quant.zero_point));
  for (int64_t r = lo; r < hi; ++r) {
    const int32_t* src = args.src + r * args.n;
    Q* dst = static_cast<Q*>(args.dst.data) + r * args.n;
    each_register(args.n, [&](int64_t i, int count) {
      Vu sum = get_words(src + i, count);
      if (args.bias != nullptr) sum += get_words(args.bias + i, count);
      Vf scale = args.per_column ? get_scale(args.scales + i, count) : splat(args.scales[0]);
      put(dst + i, round_even(to_float(reinterpret_cast<Vi>(sum)) * scale) + zero, count);
    });
  }
}

template <class A, class B, class Q>
void add(const QuantizedAddArgs& args, int64_t lo, int64_t hi) {
  const A* a = static_cast<const A*>(args.a.data) + lo;
  const B* b = static_cast<const B*>(args.b.data) + lo;
  Q* dst = static_cast<Q*>(args.dst.data) + lo;
  Vf zero_a = splat(static_cast<float>(args.a.quant.zero_point));
  Vf zero_b = splat(static_cast<float>(args.b.quant.zero_point));
  Vf zero = splat(static_cast<float>(args.dst.quant.zero_point));
  Vf floor = splat(args.relu ? 0.0F : -__builtin_inff());
  each_register(hi - lo, [&](int64_t i, int count) {
    Vf x = (get(a + i, count) - zero_a) * args.a.quant.scale;
    Vf y = (get(b + i, count) - zero_b) * args.b.quant.scale;
    put(dst + i, round_even(max_fast(x + y, floor) / args.dst.quant.scale) + zero, count);
  });
}

using Add = void (*)(const QuantizedAddArgs&, int64_t, int64_t);
// By whether a, b and dst are s8.
constexpr Add kAdds[2][2][2] = {
    {{add<uint8_t, uint8_t, uint8_t>, add<uint8_t, uint8_t, int8_t>},
     {add<uint8_t, int8_t, uint8_t>, add<uint8_t, int8_t, int8_t>}},
    {{add<int8_t, uint8_t, uint8_t>, add<int8_t, uint8_t, int8_t>},
     {add<int8_t, int8_t, uint8_t>, add<int8_t, int8_t, int8_t>}},
};
int is_s8(ElementType type) {
  return type == ElementType::kS8 ? 1 : 0;
}

}  // namespace

void quantize_row(const QuantizeArgs& args, const QuantizeRow& row) {
  alignas(64) float buffer[kBlock];
  for (int64_t at = 0; at < row.n; at += kBlock) {
    int64_t n = row.n - at < kBlock ? row.n - at : kBlock;
    const float* x = static_cast<const float*>(args.src.data) + row.offset + at;
    if (args.src.type != ElementType::kF32) {
      load_f32({args.src.data, args.src.type, {}}, row.offset + at, n, buffer);
      x = buffer;
    }
    if (is_s8(args.dst.type) != 0) {
      quantize_block<int8_t>(x, args, row, at, n);
    } else {
      quantize_block<uint8_t>(x, args, row, at, n);
    }
  }
}

void range_with_zero(const float* x, int64_t n, float* low, float* high) {
  constexpr int kChains = 4;  // one alone would wait for each comparison
  Vf least[kChains] = {}, most[kChains] = {};
  int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
    for (int k = 0; k < kChains; ++k) {
      Vf v = load(x + i + k * kLanes);
      least[k] = min_fast(v, least[k]);
      most[k] = max_fast(v, most[k]);
    }
  }
  for (; i < n; i += kLanes) {
    Vf v = n - i < kLanes ? load_part(x + i, n - i, 0.0F) : load(x + i);
    least[0] = min_fast(v, least[0]);
    most[0] = max_fast(v, most[0]);
  }
  for (int k = 1; k < kChains; ++k) {
    least[0] = min_fast(least[k], least[0]);
    most[0] = max_fast(most[k], most[0]);
  }
  *low = -max_lanes(-least[0]);
  *high = max_lanes(most[0]);
}

void dequantize_row(const QuantizeArgs& args, const QuantizeRow& row) {
  alignas(64) float buffer[kBlock];
  const bool is_f32 = args.dst.type == ElementType::kF32;
  for (int64_t at = 0; at < row.n; at += kBlock) {
    int64_t n = row.n - at < kBlock ? row.n - at : kBlock;
    float* dst = is_f32 ? static_cast<float*>(args.dst.data) + row.offset + at : buffer;
    if (args.src.type == ElementType::kI32) {
      dequantize_block<int32_t>(args, row, at, n, dst);
    } else if (is_s8(args.src.type) != 0) {
      dequantize_block<int8_t>(args, row, at, n, dst);
    } else {
      dequantize_block<uint8_t>(args, row, at, n, dst);
    }
    if (!is_f32) store_f32(dst, n, {args.dst.data, args.dst.type, {}}, row.offset + at, false);
  }
}

void requantize_rows(const RequantizeArgs& args, int64_t lo, int64_t hi) {
  if (is_s8(args.dst.type) != 0) return requantize<int8_t>(args, lo, hi);
  requantize<uint8_t>(args, lo, hi);
}

void quantized_add(const QuantizedAddArgs& args, int64_t lo, int64_t hi) {
  kAdds[is_s8(args.a.type)][is_s8(args.b.type)][is_s8(args.dst.type)](args, lo, hi);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
