// SPDX-License-Identifier: Apache-2.0
#include "narrow.h"

#include <algorithm>

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
  put_packed(data, TN_DTYPE_BITS(dtype), i,
             format ? bits_of(*format, static_cast<double>(number), rule)
                    : static_cast<uint8_t>(number_cast<int64_t>(number)));
}

}  // namespace

void convert_elements(const Context& context,
                      ElementType from,
                      const void* source,
                      ElementType to,
                      void* target,
                      int64_t n,
                      const CastRule& rule) {
  constexpr int64_t kUnit = 8;  // elements of whole bytes, so that no byte has two writers
  const bool is_exact = is_whole(from) && is_whole(to);
  parallel_for(context.parallel, (n + kUnit - 1) / kUnit, 512, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo * kUnit, end = std::min(hi * kUnit, n); i < end; ++i) {
      if (is_exact)
        store(to, target, i, load<int64_t>(from, source, i), rule);
      else
        store(to, target, i, load<double>(from, source, i), rule);
    }
  });
}

}  // namespace tenon::onednn::kernels
