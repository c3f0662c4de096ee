// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rules of RoiAlign.

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

// Samples of a bin along an axis: what a node may ask for, and what a box may lead to where a bin
// has as many as it has pixels. ONNX Runtime runs out of memory not far above.
constexpr int64_t kMostAsked = 1024, kMostOfBox = 4096;

struct RoiRules {
  int64_t rows, columns, sampling;
  double scale, offset;
  bool largest, half_pixel;
};
inline Result<RoiRules> roi_rules(Node node) {
  std::string_view mode = node.attr_text("mode", "avg");
  std::string_view where = node.attr_text("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max")
    return invalid(cat("mode: expected one of avg, max, got '", mode, "'"));
  if (where != "half_pixel" && where != "output_half_pixel")
    return invalid(
        cat("coordinate_transformation_mode: expected one of half_pixel, "
            "output_half_pixel, got '",
            where, "'"));
  int64_t sampling = node.attr_int("sampling_ratio");
  if (sampling > kMostAsked)
    return invalid(cat("sampling_ratio: expected at most ", kMostAsked, ", got ", sampling));
  const int64_t rows = node.attr_int("output_height", 1);
  const int64_t columns = node.attr_int("output_width", 1);
  if (rows < 0 || columns < 0)
    return invalid(
        cat("output_height, output_width: expected at least 0, got ", rows, ", ", columns));
  bool half = where == "half_pixel";
  return RoiRules{
      rows,          columns, sampling, node.attr_float("spatial_scale", 1), half ? 0.5 : 0.0,
      mode == "max", half};
}

Result<std::vector<Value>> roi_align_decompose(EditView edit, Node node);

}  // namespace tenon::ops
