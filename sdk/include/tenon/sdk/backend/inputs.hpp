// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run is given, beside what its part was compiled for.

#include "tenon/sdk/tensor.hpp"

namespace tenon::backend {

// nullptr, or why a step cannot read `given` where it was compiled for `wanted`, dense row-major.
inline const char* why_not_as_compiled(const DLTensor& given, const DLTensor& wanted) {
  if (dtype_of(given) != dtype_of(wanted) || !std::ranges::equal(shape_of(given), shape_of(wanted)))
    return "shape or type is not the compiled one";
  return is_dense(given) ? nullptr : "expected dense row-major memory";
}

}  // namespace tenon::backend
