// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sequences and optionals while they run: one tensor of bytes that holds a packed list, by
// abi/lists.md. An optional is a list of one or none.

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

struct Item {
  bool is_list = false;  // the bytes are a list themselves
  uint32_t dtype = TN_DTYPE_NONE;
  std::vector<int64_t> dims;
  const char* data = nullptr;  // borrowed

  static Item of(const DLTensor& tensor, bool is_list = false) {
    return {is_list,
            dtype_of(tensor),
            {tensor.shape, tensor.shape + tensor.ndim},
            data_of<const char>(tensor)};
  }
  uint64_t bytes() const { return bytes_of(dtype, element_count(dims)); }
};

Result<std::vector<Item>> unpack(const DLTensor& list);
// As output i of the call.
Status pack(const Call& call, uint64_t i, const std::vector<Item>& items);
// An item that is a tensor, as output i; one that is a list, as its bytes.
Status put(const Call& call, uint64_t i, const Item& item);

// The type of a sequence or optional whose tensors are of `element`.
inline Type wrapped(Type element, uint32_t kind) {
  element.kind = kind;
  return element;
}

}  // namespace tenon::ops
