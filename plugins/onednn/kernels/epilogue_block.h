// SPDX-License-Identifier: Apache-2.0
#pragma once
// The epilogue of one block of a product's result, from what its caller gave for the whole.

#include <algorithm>

#include "epilogue_args.h"

namespace tenon::onednn::kernels {

// Args: of a product (int8_product.h, int4_product.h, binary_product.h, sparse_product.h). columns:
// of a whole block; the last one has as many as are left.
template <class Args>
Epilogue epilogue_of_block(const Args& args,
                           int64_t first_row,
                           int64_t first_column,
                           int64_t columns) {
  Epilogue made{args};
  made.columns = std::min(columns, args.n - first_column);
  if (args.scales != nullptr) {
    made.scales += first_column;
    made.bias += first_column;
  }
  made.dst.data = static_cast<char*>(args.dst.data) +
                  (first_row * args.dst_stride + first_column) * element_bytes(args.dst.type);
  made.first_row = first_row;
  made.first_column = first_column;
  return made;
}

}  // namespace tenon::onednn::kernels
