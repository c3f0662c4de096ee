// SPDX-License-Identifier: Apache-2.0
#include "grad_pass.hpp"

TENON_PASS(value_and_grad,
           tenon::autodiff::ValueAndGrad,
           "autodiff.value_and_grad",
           "the scalar output, then its gradient by inputs or constants",
           GRAD_OPTIONS)
