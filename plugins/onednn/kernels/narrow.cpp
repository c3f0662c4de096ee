// SPDX-License-Identifier: Apache-2.0
#include "narrow.h"

#include <algorithm>
#include <cmath>

#include "numbers.h"

namespace tenon::onednn::kernels {
namespace {

constexpr uint32_t kNarrowTypes[] = {
    TN_U4,
    TN_I4,
    TN_DTYPE(kDLUInt, 2),
    TN_DTYPE(kDLInt, 2),
    TN_DTYPE(kDLFloat4_e2m1fn, 4),
    TN_DTYPE(kDLFloat8_e4m3fn, 8),
    TN_DTYPE(kDLFloat8_e4m3fnuz, 8),
    TN_DTYPE(kDLFloat8_e5m2, 8),
    TN_DTYPE(kDLFloat8_e5m2fnuz, 8),
    TN_DTYPE(kDLFloat8_e8m0fnu, 8),
};
uint32_t narrow_dtype(ElementType type) {
  return kNarrowTypes[static_cast<int>(type) - static_cast<int>(ElementType::kU4)];
}

bool is_whole(ElementType type) {
  return is_narrow_type(type) ? minifloat(narrow_dtype(type)) == nullptr
                              : !is_real(type) && type != ElementType::kBool;
}

template <class Number>
Number load(ElementType type, const void* data, int64_t i) {
  if (!is_narrow_type(type))
    return visit(type,
                 [&]<class T>() { return number_cast<Number>(static_cast<const T*>(data)[i]); });
  const uint32_t dtype = narrow_dtype(type);
  if (const Minifloat* format = minifloat(dtype))
    return static_cast<Number>(number_of(*format, packed_at(data, TN_DTYPE_BITS(dtype), i)));
  return static_cast<Number>(packed_integer_at(data, dtype, i));
}

template <class Number>
void store(ElementType type, void* data, int64_t i, Number number, const CastRule& rule) {
  if (!is_narrow_type(type))
    return visit(type, [&]<class T>() { static_cast<T*>(data)[i] = number_cast<T>(number); });
  const uint32_t dtype = narrow_dtype(type);
  const Minifloat* format = minifloat(dtype);
  const int64_t each = 8 / TN_DTYPE_BITS(dtype);  // to a byte, written from its first on
  if (i % each == 0) static_cast<uint8_t*>(data)[i / each] = 0;
  put_packed(data, TN_DTYPE_BITS(dtype), i,
             format ? bits_of(*format, static_cast<double>(number), rule)
                    : static_cast<uint8_t>(number_cast<int32_t>(number)));
}

// Elements of whole bytes, so that no byte has two writers.
template <class Body>
void for_each_element(const Context& context, int64_t n, const Body& body) {
  constexpr int64_t kUnit = 8;
  parallel_for(context.parallel, (n + kUnit - 1) / kUnit, 512, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo * kUnit, end = std::min(hi * kUnit, n); i < end; ++i)
      body(i);
  });
}

// Which scale is that of element i.
int64_t scale_of(const AnyQuantizeArgs& args, int64_t i) {
  const int64_t along = i / args.inner % args.axis;
  if (args.block == 0) return along;
  const int64_t blocks = (args.axis + args.block - 1) / args.block;
  return (i / args.inner / args.axis * blocks + along / args.block) * args.inner + i % args.inner;
}

IntegerEnds ends_of(ElementType type) {
  constexpr ElementType kSigned[] = {ElementType::kS8,  ElementType::kS16, ElementType::kI32,
                                     ElementType::kI64, ElementType::kS4,  ElementType::kS2};
  return integer_ends(std::ranges::count(kSigned, type) > 0,
                      static_cast<uint32_t>(kElementBits[static_cast<int>(type)]));
}

}  // namespace

void quantize_any(const Context& context,
                  const AnyQuantizeArgs& args,
                  const void* x,
                  const void* scales,
                  const void* zeros,
                  void* y) {
  const IntegerEnds ends = ends_of(args.to);
  const bool is_integer = is_whole(args.to);
  const CastRule rule{args.saturates};
  for_each_element(context, args.n, [&](int64_t i) {
    const int64_t at = scale_of(args, i);
    const double zero = zeros ? load<double>(args.to, zeros, at) : 0;
    const double ratio =
        static_cast<double>(static_cast<float>(load<double>(args.from, x, i)) /
                            static_cast<float>(load<double>(args.scale, scales, at)));
    if (!is_integer) return store(args.to, y, i, ratio + zero, rule);
    const double whole = std::nearbyint(ratio) + zero;
    const double held = std::isnan(whole) ? ends.low : std::clamp(whole, ends.low, ends.high);
    store(args.to, y, i, static_cast<int64_t>(held), rule);
  });
}

void dequantize_any(const Context& context,
                    const AnyQuantizeArgs& args,
                    const void* x,
                    const void* scales,
                    const void* zeros,
                    void* y) {
  for_each_element(context, args.n, [&](int64_t i) {
    const int64_t at = scale_of(args, i);
    const double zero = zeros ? load<double>(args.from, zeros, at) : 0;
    const double off = load<double>(args.from, x, i) - zero;
    store(args.to, y, i, off * load<double>(args.scale, scales, at), {});
  });
}

void convert_elements(const Context& context,
                      ElementType from,
                      const void* source,
                      ElementType to,
                      void* target,
                      int64_t n,
                      const CastRule& rule) {
  const bool is_exact = is_whole(from) && is_whole(to);
  for_each_element(context, n, [&](int64_t i) {
    if (is_exact)
      store(to, target, i, load<int64_t>(from, source, i), rule);
    else
      store(to, target, i, load<double>(from, source, i), rule);
  });
}

}  // namespace tenon::onednn::kernels
