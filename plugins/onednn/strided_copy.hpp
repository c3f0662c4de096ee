// SPDX-License-Identifier: Apache-2.0
#pragma once
// A step that moves elements of one type between two strided places, bit for bit; a source stride
// of 0 repeats. For types and strides that oneDNN's reorder does not know.

#include "plan.hpp"

namespace tenon::onednn {

Step strided_copy(std::string name, const View& from, const View& to);

}  // namespace tenon::onednn
