// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rules of GridSample.

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

enum class Mode { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct Rules {
  Mode mode;
  Padding padding;
  bool corners;
};
inline Result<Rules> rules_of(Node node) {
  std::string_view mode = node.attr_text("mode", "linear");
  std::string_view padding = node.attr_text("padding_mode", "zeros");
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    return invalid(cat("mode: expected one of linear, nearest, cubic, got '", mode, "'"));
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return invalid(
        cat("padding_mode: expected one of zeros, border, reflection, got '", padding, "'"));
  return Rules{mode == "linear"    ? Mode::kLinear
               : mode == "nearest" ? Mode::kNearest
                                   : Mode::kCubic,
               padding == "zeros"    ? Padding::kZeros
               : padding == "border" ? Padding::kBorder
                                     : Padding::kReflection,
               node.attr_int("align_corners") != 0};
}

Result<std::vector<Value>> grid_sample_decompose(EditView edit, Node node);

}  // namespace tenon::ops
