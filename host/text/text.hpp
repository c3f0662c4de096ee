// SPDX-License-Identifier: Apache-2.0
#pragma once
// The canonical text of graphs. What print.cpp prints, parse.cpp reads.

#include <string>
#include <string_view>

#include "services/status.hpp"

namespace tenon::host {

// Constants with at most this many elements are printed as numbers, larger ones by hash.
inline constexpr uint64_t kFewElements = 16;

std::string print_text(const tn_graph& graph, bool with_data);
Result<tn_graph*> parse_text(tn_ctx* ctx, std::string_view text);

}  // namespace tenon::host
