// SPDX-License-Identifier: Apache-2.0
#include "grad_pass.hpp"

TENON_PASS(grad,
           tenon::autodiff::GradOnly,
           "autodiff.grad",
           "the gradient of a scalar output by inputs or constants",
           GRAD_OPTIONS)
