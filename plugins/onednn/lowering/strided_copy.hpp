// SPDX-License-Identifier: Apache-2.0
#pragma once
// A step that moves elements of one type between two strided places, bit for bit; a source stride
// of 0 repeats. For types and strides that oneDNN's reorder does not know, and for matrices that
// are transposed: there oneDNN takes twice as long.

#include "plan.hpp"

namespace tenon::onednn {

// At most eight axes that are not 1.
Step strided_copy(std::string name, const View& from, const View& to);
// Whether the copy turns matrices: each side has neighbours in memory along another axis.
bool is_transposed(const View& from, const View& to);

}  // namespace tenon::onednn
