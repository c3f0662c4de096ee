// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes oneDNN run on our team. libdnnl is compiled with OpenMP and calls ten functions of
// libgomp's interface; team:: has the same ten, and the addresses in libdnnl's own import table
// are replaced by theirs. What other libraries of the process call is as it was.

#include <string>

namespace tenon::onednn::team {

// Does it once in a process. Empty, or why oneDNN is not on the team: libdnnl imports a function
// of OpenMP that the team does not have (another compiler's build); then nothing is replaced.
const std::string& why_not_on_team();

}  // namespace tenon::onednn::team
