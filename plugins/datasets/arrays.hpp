// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arrays of a NumPy .npz or .npy file. Stored entries are windows of the mapped file; deflated
// ones, and those in another order of bytes or axes, are unpacked.

#include <memory>
#include <string>
#include <vector>

#include "file.hpp"
#include "npy.hpp"

namespace tenon::datasets {

struct Array {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  std::vector<int64_t> shape;
  std::string_view data;               // in C order
  std::shared_ptr<const void> keeper;  // of the data: the file, which others share, or a copy
  std::string trouble = {};            // why it is no array of numbers; then it has no data
};

// wanted: names; empty: all. An .npy file's one array has the name wanted[0], or the file's.
Result<std::vector<Array>> read_arrays(const std::shared_ptr<const File>& file,
                                       const std::vector<std::string>& wanted);

}  // namespace tenon::datasets
