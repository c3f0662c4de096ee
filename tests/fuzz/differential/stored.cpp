// SPDX-License-Identifier: Apache-2.0
#include "stored.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::fuzz {
namespace {

constexpr float kLeastScale = 1e-6f;  // of numbers that are all 0
constexpr int kZeroOfUnsigned = 128;

int64_t most_of(uint32_t dtype) {
  return dtype == TN_I32 ? 1 << 20 : 127;
}

template <class T>
Result<Value> constant_of(EditView edit,
                          uint32_t dtype,
                          const Type& type,
                          const std::vector<int64_t>& integers) {
  return edit.constant<T>(dtype, type.dims, std::vector<T>(integers.begin(), integers.end()));
}

Result<Value> constant_of(EditView edit,
                          uint32_t dtype,
                          const Type& type,
                          const std::vector<int64_t>& integers) {
  if (dtype == TN_I32) return constant_of<int32_t>(edit, dtype, type, integers);
  if (dtype == TN_U8) return constant_of<uint8_t>(edit, dtype, type, integers);
  return constant_of<int8_t>(edit, dtype, type, integers);
}

}  // namespace

Result<Stored> stored(EditView edit, Value constant, uint32_t dtype, Random& random) {
  const Type type = constant.type();
  const size_t axis = random.one_in(2) || type.rank() == 0 ? 0 : type.rank() - 1;
  const bool by_axis = random.one_in(2) && type.rank() > 0 && dtype != TN_U8;
  const int64_t n_scales = by_axis ? type.dims[axis] : 1;
  int64_t inner = 1;
  for (size_t i = axis + 1; i < type.rank(); ++i)
    inner *= type.dims[i];
  std::vector<float> scales(static_cast<size_t>(n_scales), kLeastScale);
  auto scale_at = [&](int64_t i) -> float& {
    return scales[static_cast<size_t>(by_axis ? i / inner % n_scales : 0)];
  };
  const Tensor numbers = constant.constant();
  const float* from = numbers.data<float>();
  const auto most = static_cast<float>(most_of(dtype));
  for (int64_t i = 0; i < type.elements(); ++i)
    scale_at(i) = std::max(scale_at(i), std::fabs(from[i]) / most);
  std::vector<int64_t> integers;
  for (int64_t i = 0; i < type.elements(); ++i)
    integers.push_back(std::lround(from[i] / scale_at(i)) + (dtype == TN_U8 ? kZeroOfUnsigned : 0));
  TN_TRY(held, constant_of(edit, dtype, type, integers));
  TN_TRY(factors,
         edit.constant<float>(
             TN_F32, by_axis ? std::vector<int64_t>{n_scales} : std::vector<int64_t>{}, scales));
  std::vector<Value> inputs = {held, factors};
  if (dtype == TN_U8) {
    TN_TRY(zero, edit.constant<uint8_t>(TN_U8, {}, {kZeroOfUnsigned}));
    inputs.push_back(zero);
  }
  TN_TRY(back,
         edit.op("DequantizeLinear", inputs, {{"axis", static_cast<int64_t>(by_axis ? axis : 0)}}));
  return Stored{back, scales};
}

}  // namespace tenon::fuzz
