// SPDX-License-Identifier: Apache-2.0
// Conversions of f32 to integers, one vectorised loop each; contract in ../exact_args.h.

#include "../exact_args.h"
#include "level.h"
#include "truncate.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

template <class T, class Signed>
void add_store(SingleOps& ops, ElementType type) {
  ops.store[static_cast<int>(type)] = truncate_tile<T, Signed, float>;
}

SingleOps all_ops() {
  SingleOps ops = {};
  add_store<uint8_t, int32_t>(ops, ElementType::kU8);
  add_store<int8_t, int32_t>(ops, ElementType::kS8);
  add_store<uint16_t, int32_t>(ops, ElementType::kU16);
  add_store<int16_t, int32_t>(ops, ElementType::kS16);
  add_store<uint32_t, int32_t>(ops, ElementType::kU32);
  add_store<int32_t, int32_t>(ops, ElementType::kI32);
  add_store<uint64_t, int64_t>(ops, ElementType::kU64);
  add_store<int64_t, int64_t>(ops, ElementType::kI64);
  return ops;
}

}  // namespace

void single_ops(const SingleOps** ops) {
  static const SingleOps kOps = all_ops();
  *ops = &kOps;
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
