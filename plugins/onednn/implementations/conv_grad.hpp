// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the implementations of a convolution's weight gradient look at. The list is in
// conv_grad.cpp.

#include "choice.hpp"

namespace tenon::onednn {

struct ConvGradSite {
  Lowering& lowering;
  int index;

  const Node& node() const { return lowering.graph().nodes[index]; }
  const Dims& dims(int value) const { return lowering.graph().values[value].dims; }
};

Offer offer_winograd_weight_grad(const ConvGradSite& site);
// With one filter for each channel; why the own kernel does not compute it.
std::string why_not_depthwise(const ConvGradSite& site);
void lower_depthwise_weight_grad(const ConvGradSite& site);

}  // namespace tenon::onednn
