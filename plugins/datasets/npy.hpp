// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's array format (NEP 1, versions 1.0 to 3.0): the header, and the elements as they lie.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon::datasets {

struct NpyArray {
  uint32_t dtype = TN_DTYPE_NONE;
  std::vector<int64_t> shape;
  bool fortran = false;   // first axis fastest
  bool swapped = false;   // most significant byte first
  std::string_view data;  // of exactly the elements
  bool is_plain() const { return !swapped && !(fortran && shape.size() > 1); }
};

bool looks_like_npy(std::string_view bytes);
// who: file and entry, for messages.
Result<NpyArray> parse_npy(std::string_view bytes, const std::string& who);
// The elements in C order, least significant byte first.
std::string to_plain(const NpyArray& array);

}  // namespace tenon::datasets
