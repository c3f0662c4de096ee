// SPDX-License-Identifier: Apache-2.0
#include "product_pass.hpp"

TENON_PASS(vjp,
           tenon::autodiff::Vjp,
           "autodiff.vjp",
           "cotangents of the outputs in, gradients of the inputs out",
           PRODUCT_OPTIONS)
