// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conv of as many groups as channels, 3 x 3 in int8, by our own kernel: oneDNN's multiplies one tap
// an instruction.

#include "../tail.hpp"

namespace tenon::onednn {

// False, and nothing done, where the kernel does not apply: another window, a result that is not
// stored in 8 bits, a tail beyond bias and clip, a CPU without the instructions. The node must be
// one that runs in int8.
bool lower_depthwise(Lowering& lowering, int node, const Tail& tail);

}  // namespace tenon::onednn
