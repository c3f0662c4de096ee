// SPDX-License-Identifier: Apache-2.0
// In place of all else here on processors that Xbyak writes no code for.

#include "pointwise_code.h"

namespace tenon::onednn::kernels::code {

std::unique_ptr<const PointwiseCode> PointwiseCode::make(const Program& /*program*/,
                                                         std::span<const CodeEdge> /*sources*/,
                                                         std::span<const CodeEdge> /*targets*/,
                                                         Isa /*isa*/,
                                                         std::string* why) {
  *why = "no machine code for this processor";
  return nullptr;
}

}  // namespace tenon::onednn::kernels::code
