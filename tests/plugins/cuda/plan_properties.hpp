// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is true of every plan, worked out again from its steps alone: what each step says that it
// reads and writes is what its work points to, memory of values that are alive together lies apart,
// nothing is read before it is written, and no state is read behind the copy that replaces it.

#include <string>
#include <vector>

#include "plan.hpp"

namespace tenon::cuda::test {

// One sentence for each that does not hold, with the step and the buffer; empty: all do.
std::vector<std::string> broken_properties(const Plan& plan);

}  // namespace tenon::cuda::test
