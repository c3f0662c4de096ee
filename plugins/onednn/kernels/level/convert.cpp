// SPDX-License-Identifier: Apache-2.0
// Rows of any element type to rows of f32 and back; contract in convert.h.

#include "elements.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

// Fewer than two of a register's halves: by two halves that may overlap, or two quarters ...
template <int width>
void move_below(const float* src, int64_t n, float* dst) {
  using V = VectorOf<float, width>::Type;
  if (n >= width) {
    const V first = load_vector<V>(src);
    const V last = load_vector<V>(src + n - width);
    std::memcpy(dst, &first, sizeof first);
    std::memcpy(dst + n - width, &last, sizeof last);
  } else if constexpr (width > 1) {
    move_below<width / 2>(src, n, dst);
  }
}
template <int width>
void fill_below(float value, int64_t n, float* dst) {
  using V = VectorOf<float, width>::Type;
  if (n >= width) {
    const V all = value - V{};
    std::memcpy(dst, &all, sizeof all);
    std::memcpy(dst + n - width, &all, sizeof all);
  } else if constexpr (width > 1) {
    fill_below<width / 2>(value, n, dst);
  }
}

// What is left over whole registers.
template <class T>
void load_rest(const T* src, int64_t n, float* dst) {
  store_part(dst, load_lanes_part(src, n), n);
}
void load_rest(const float* src, int64_t n, float* dst) {
  move_below<kLanes / 2>(src, n, dst);
}
template <class T>
void store_rest(const float* src, int64_t n, T* dst) {
  store_lanes_part(dst, load_part(src, n, 0.0F), n);
}
void store_rest(const float* src, int64_t n, float* dst) {
  move_below<kLanes / 2>(src, n, dst);
}

template <class T>
void load_row(const void* base, int64_t offset, int64_t n, float* dst) {
  const T* src = static_cast<const T*>(base) + offset;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(dst + i, load_lanes(src + i));
  if (i < n) load_rest(src + i, n - i, dst + i);
}

template <class T>
void store_row(const float* src, int64_t n, void* base, int64_t offset) {
  T* dst = static_cast<T*>(base) + offset;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store_lanes(dst + i, load(src + i));
  if (i < n) store_rest(src + i, n - i, dst + i);
}

// One element, n times.
template <class T>
void load_repeated(const void* base, int64_t offset, int64_t n, float* dst) {
  const float value = load_lanes_part(static_cast<const T*>(base) + offset, 1)[0];
  const Vf all = splat(value);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(dst + i, all);
  fill_below<kLanes / 2>(value, n - i, dst + i);
}

// From the last element to the first.
template <class T>
void load_backwards(const T* src, int64_t n, float* dst) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(dst + i, reversed(load_lanes(src - i - kLanes + 1)));
  for (; i < n; ++i)
    dst[i] = load_lanes_part(src - i, 1)[0];
}

template <class T>
void load_scattered(const void* base, int64_t offset, int64_t stride, int64_t n, float* dst) {
  const T* src = static_cast<const T*>(base) + offset;
  if (stride == -1) return load_backwards(src, n, dst);
  T lanes[kLanes] = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    int64_t count = n - i < kLanes ? n - i : kLanes;
    for (int64_t k = 0; k < count; ++k)
      lanes[k] = src[(i + k) * stride];
    Vf v = load_lanes(lanes);
    if (count == kLanes) {
      store(dst + i, v);
    } else {
      store_part(dst + i, v, count);
    }
  }
}

template <class T>
void load_rows(const void* base, const RowGrid& grid, float* dst) {
  int64_t offset = grid.offset;
  for (int64_t r = 0; r < grid.rows; ++r, offset += grid.row_stride, dst += grid.length) {
    if (grid.stride == 1)
      load_row<T>(base, offset, grid.length, dst);
    else if (grid.stride == 0)
      load_repeated<T>(base, offset, grid.length, dst);
    else
      load_scattered<T>(base, offset, grid.stride, grid.length, dst);
  }
}

// real = (stored - zero_point) * scale, the subtraction exact as ONNX has it in int32.
void dequantize_row(float* row, int64_t n, Quant quant) {
  const float zero = static_cast<float>(quant.zero_point);
  for (int64_t i = 0; i < n; ++i)
    row[i] = (row[i] - zero) * quant.scale;
}

// The zero point is added after rounding, so that halves go to even as in ONNX.
template <class T>
void quantize_row(const float* src, int64_t n, Quant quant, void* base, int64_t offset) {
  T* dst = static_cast<T*>(base) + offset;
  const float zero = static_cast<float>(quant.zero_point);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store_lanes(dst + i, round_even(load(src + i) / quant.scale) + zero);
  }
  if (i < n) {
    Vf v = load_part(src + i, n - i, 0.0F);
    store_lanes_part(dst + i, round_even(v / quant.scale) + zero, n - i);
  }
}

// Whole cache lines past the caches: the destination is not read first.
void stream_row(const float* src, int64_t n, float* dst) {
  if (reinterpret_cast<uint64_t>(dst) % sizeof(float) != 0) {  // never at the start of a line
    std::memcpy(dst, src, static_cast<uint64_t>(n) * sizeof(float));
    return;
  }
  int64_t i = 0;
  for (; i < n && reinterpret_cast<uint64_t>(dst + i) % kVectorBytes != 0; ++i)
    dst[i] = src[i];
  for (; i + kLanes <= n; i += kLanes)
    stream(dst + i, load(src + i));
  for (; i < n; ++i)
    dst[i] = src[i];
  end_streams();
}

using LoadRow = void (*)(const void*, int64_t, int64_t, float*);
using LoadScattered = void (*)(const void*, int64_t, int64_t, int64_t, float*);
using LoadRows = void (*)(const void*, const RowGrid&, float*);
using StoreRow = void (*)(const float*, int64_t, void*, int64_t);
struct TypeRow {
  LoadRow load;
  LoadScattered load_scattered;
  LoadRows load_rows;
  StoreRow store;
};
template <class T>
constexpr TypeRow kTypeRow = {load_row<T>, load_scattered<T>, load_rows<T>, store_row<T>};
// In the order of ElementType, up to kF64.
constexpr TypeRow kTypes[] = {
    kTypeRow<float>,  kTypeRow<Bf16>,    kTypeRow<F16>,     kTypeRow<uint8_t>,
    kTypeRow<int8_t>, kTypeRow<int32_t>, kTypeRow<int64_t>, kTypeRow<Bool>,
};
static_assert(sizeof kTypes / sizeof kTypes[0] == static_cast<uint64_t>(ElementType::kF64));

bool is_quantized(ElementType type, Quant quant) {
  return quant.scale != 0.0F && (type == ElementType::kU8 || type == ElementType::kS8);
}

}  // namespace

void load_f32(const Source& src, int64_t offset, int64_t n, float* dst) {
  kTypes[static_cast<int>(src.type)].load(src.data, offset, n, dst);
  if (is_quantized(src.type, src.quant)) dequantize_row(dst, n, src.quant);
}

void load_strided(const Source& src, int64_t offset, int64_t stride, int64_t n, float* dst) {
  kTypes[static_cast<int>(src.type)].load_scattered(src.data, offset, stride, n, dst);
  if (is_quantized(src.type, src.quant)) dequantize_row(dst, n, src.quant);
}

void load_grid(const Source& src, const RowGrid& grid, float* dst) {
  kTypes[static_cast<int>(src.type)].load_rows(src.data, grid, dst);
  if (is_quantized(src.type, src.quant)) dequantize_row(dst, grid.rows * grid.length, src.quant);
}

void pair_bf16(const float* low, const float* high, int64_t n, uint32_t* dst) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vu pair = bits_of_bf16(load(low + i)) | bits_of_bf16(load(high + i)) << 16;
    std::memcpy(dst + i, &pair, sizeof pair);
  }
  for (; i < n; ++i) {
    Vu pair = bits_of_bf16(splat(low[i])) | bits_of_bf16(splat(high[i])) << 16;
    dst[i] = pair[0];
  }
}

void store_f32(const float* src, int64_t n, const Target& dst, int64_t offset, bool stream) {
  if (is_quantized(dst.type, dst.quant)) {
    if (dst.type == ElementType::kU8)
      return quantize_row<uint8_t>(src, n, dst.quant, dst.data, offset);
    return quantize_row<int8_t>(src, n, dst.quant, dst.data, offset);
  }
  if (stream && dst.type == ElementType::kF32) {
    return stream_row(src, n, static_cast<float*>(dst.data) + offset);
  }
  kTypes[static_cast<int>(dst.type)].store(src, n, dst.data, offset);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
