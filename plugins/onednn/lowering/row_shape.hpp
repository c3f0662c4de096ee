// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the elements of values are rows for a reduction over their last axes, and how operands lie
// beside them.

#include <optional>

#include "row_program.hpp"
#include "view.hpp"

namespace tenon::onednn {

struct RowShape {
  Dims dims = {};
  Dims row_dims = {};             // the reduced axes have extent 1
  int64_t n_reduced = 0;          // of the axes, the last ones
  int64_t rows = 0, columns = 0;  // in parts of rows where these are cut
  int64_t parts = 1;              // of a row
  bool is_only_reduced = false;   // too few rows, or too long ones, to be read again from a block

  // Long rows are cut: by their length alone, so that the result does not depend on how many
  // threads there are. False where they cannot be, and where rows are too short to be worth it.
  bool cut(const Dims& dims, size_t n_reduced);
  // Of what lies in memory in row-major order: like `dims`, one number for each row, one row for
  // all, broadcast along some axes of the rows, or a single number. Without a place.
  std::optional<RowEdge> edge_of(const View& view) const;
  // The axes of the rows but for the last one; of rows in parts, the rows.
  Dims outer() const {
    if (parts > 1) return {rows / parts};
    return {dims.begin(), dims.end() - n_reduced - 1};
  }

 private:
  bool is_one_row(const Dims& other) const;
  std::optional<RowEdge> broadcast_edge(const View& view) const;
};

}  // namespace tenon::onednn
