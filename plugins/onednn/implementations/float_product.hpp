// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of f32 numbers with constant weights in our own kernel (kernels/float_product.h).

#include "product.hpp"

namespace tenon::onednn {

Offer offer_float_product(const ProductSite& site);

}  // namespace tenon::onednn
