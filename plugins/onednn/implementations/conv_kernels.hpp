// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of oneDNN's kernels for a convolution compute it.

#include <oneapi/dnnl/dnnl.hpp>

namespace tenon::onednn {

// Goes on to oneDNN's next kernel where the one that it chose is known to be wrong; the description
// is empty where there is none behind it.
void skip_wrong_kernels(dnnl::convolution_forward::primitive_desc* description);

}  // namespace tenon::onednn
