// SPDX-License-Identifier: Apache-2.0
#include "product_pass.hpp"

TENON_PASS(jvp,
           tenon::autodiff::Jvp,
           "autodiff.jvp",
           "tangents of the inputs in, tangents of the outputs out",
           PRODUCT_OPTIONS)
