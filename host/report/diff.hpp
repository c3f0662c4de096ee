// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tenon::host {

// Line differences in unified form; empty when the texts are equal.
std::string diff_lines(std::string_view before, std::string_view after);

}  // namespace tenon::host
