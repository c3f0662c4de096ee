// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a kernel makes, and what a caller gives for it, against what was inferred.

#include <string>
#include <string_view>

#include "plan/plan.hpp"

namespace tenon::host {

// "node n: ", or nothing where no node makes the value.
std::string maker_of(const tn_graph* graph, const std::string& value);

// Whether a kernel asks for the type that was inferred when the plan was made.
bool is_inferred(const Slot& slot, const DLTensor& proto);
Status not_inferred(const Slot& slot, const DLTensor& proto, std::string_view maker);

// Whether the caller's function for outputs has filled in memory for proto: it may have done
// nothing.
Status check_given(const DLTensor& proto, const DLTensor& given);

}  // namespace tenon::host
