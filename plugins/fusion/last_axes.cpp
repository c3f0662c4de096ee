// SPDX-License-Identifier: Apache-2.0
#include "last_axes.hpp"

#include <algorithm>

namespace tenon::fusion {

int64_t first_axis(Node mean) {
  Type type = mean.input(0).type();
  std::optional<std::vector<int64_t>> axes = constant_ints(mean.input(1));
  if (!axes || !type.ranked || axes->empty() || mean.attr_int("keepdims", 1) != 1) return -1;
  auto rank = static_cast<int64_t>(type.rank());
  for (int64_t& axis : *axes)
    axis = positive_axis(axis, type.rank());
  std::sort(axes->begin(), axes->end());
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] != rank - static_cast<int64_t>(axes->size() - i)) return -1;
  }
  return axes->front();
}

bool has_normed_shape(Value value, const Type& type, int64_t axis) {
  Type own = value.type();
  std::vector<int64_t> wanted(type.dims.begin() + axis, type.dims.end());
  return own.dtype == type.dtype && own.dims == wanted;
}

}  // namespace tenon::fusion
