// SPDX-License-Identifier: Apache-2.0
#include "vector_code.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tenon::onednn::kernels::code {

namespace {

// The index of an equal element, which is added where there is none.
template <class T>
uint16_t index_in(std::vector<T>& pool, const T& wanted) {
  auto found = std::find(pool.begin(), pool.end(), wanted);
  if (found == pool.end()) found = pool.insert(found, wanted);
  return static_cast<uint16_t>(found - pool.begin());
}

}  // namespace

Value VectorCode::number(float x) {
  return bits(std::bit_cast<uint32_t>(x));
}

Value VectorCode::bits(uint32_t x) {
  return {Value::Kind::kNumber, index_in(numbers_, x)};
}

Value VectorCode::table(const Table& t) {
  return {Value::Kind::kTable, index_in(tables_, t)};
}

bool VectorCode::is_real_number(Value a) const {
  return a.kind == Value::Kind::kNumber && !std::isnan(std::bit_cast<float>(numbers_[a.index]));
}

void VectorCode::store(uint8_t target, Value a) {
  instructions_.push_back({Op::kStore, target, {}, {a}});
}

void VectorCode::store_bf16(uint8_t target, Value a) {
  instructions_.push_back({Op::kStoreBf16, target, {}, {a}});
}

Value VectorCode::emit(Instruction instruction) {
  instruction.to = {Value::Kind::kTemporary, n_temporaries_++};
  instructions_.push_back(instruction);
  return instruction.to;
}

}  // namespace tenon::onednn::kernels::code
