// SPDX-License-Identifier: Apache-2.0
#include "row_shape.hpp"

#include <algorithm>

namespace tenon::onednn {
namespace {

constexpr int64_t kShortestRow = 4;
constexpr int64_t kShortestPart = 256;  // of a row that is cut
constexpr int64_t kLongestRow = 4096;   // several of them fit the slots
constexpr int64_t kFewestRows = 16;     // that are read again behind their reduction
constexpr int64_t kLeastBlock =
    1024;  // elements along the last axis of rows, where one is broadcast

}  // namespace

bool RowShape::cut(const Dims& of, size_t last_axes) {
  dims = row_dims = of;
  n_reduced = static_cast<int64_t>(last_axes);
  std::fill(row_dims.end() - n_reduced, row_dims.end(), 1);
  rows = element_count(row_dims);
  parts = 1;
  if (rows == 0) return false;
  columns = element_count(dims) / rows;
  is_only_reduced = rows < kFewestRows || columns > kLongestRow;
  if (columns <= kLongestRow) return columns >= kShortestRow;
  for (int64_t part = kLongestRow; part >= kShortestPart && parts == 1; --part)
    if (columns % part == 0) parts = columns / part;
  columns /= parts;
  rows *= parts;
  return parts > 1;
}

std::optional<RowEdge> RowShape::edge_of(const View& view) const {
  RowEdge edge{.type = view.type};
  if (view.count() == 1) edge.step = 0;
  if (view.count() == 1) return edge;
  if (!is_row_major(view)) return std::nullopt;
  if (view.dims == dims) {
    edge.row_elements = columns;
  } else if (parts > 1) {
    if (view.dims != row_dims) return std::nullopt;
    edge.step = 0;  // the same for all parts of a row
    edge.outer = {1};
  } else if (view.dims == row_dims) {
    edge.row_elements = 1;
    edge.step = 0;
  } else if (!is_one_row(view.dims)) {
    return broadcast_edge(view);
  }
  return edge;
}

bool RowShape::is_one_row(const Dims& other) const {
  if (static_cast<int64_t>(other.size()) < n_reduced || element_count(other) != columns)
    return false;
  return std::equal(other.end() - n_reduced, other.end(), dims.end() - n_reduced);
}

// Along all of a row or none of it.
std::optional<RowEdge> RowShape::broadcast_edge(const View& view) const {
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t last = rank - n_reduced - 1;  // axis of the rows
  if (last < 1 || dims[static_cast<size_t>(last)] * columns < kLeastBlock ||
      !backend::broadcasts_to(view.dims, dims))
    return std::nullopt;
  const Dims strides = broadcast_strides(view, dims);
  Dims sizes(dims.size(), 1);
  std::copy(view.dims.begin(), view.dims.end(),
            sizes.end() - static_cast<int64_t>(view.dims.size()));
  const auto inner = sizes.end() - n_reduced;
  const bool is_single = std::all_of(inner, sizes.end(), [](int64_t size) { return size == 1; });
  if (!is_single && !std::equal(inner, sizes.end(), dims.end() - n_reduced)) return std::nullopt;
  return RowEdge{.type = view.type,
                 .row_elements = strides[static_cast<size_t>(last)],
                 .step = is_single ? 0 : 1,
                 .outer = {strides.begin(), strides.begin() + last}};
}

}  // namespace tenon::onednn
