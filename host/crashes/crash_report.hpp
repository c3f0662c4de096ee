// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which plugin a crash of the process is to be blamed on: the innermost one on the stack, the
// component or operator row whose function was called, and what was being done. For programs that
// belong to Tenon (config "report_crashes"); others have handlers of their own.

#include <filesystem>
#include <string>
#include <string_view>

#include "tenon/role/op.h"

namespace tenon::host {

// From now on a crash is reported in one line on standard error before the process dies of it. What
// is reported is of this thread, or of threads that work for it.
void report_crashes();

// What a report knows by name; nothing is kept while there are no reports.
void know_plugin(const std::filesystem::path& file, std::string_view id);
void know_row(const tn_op& row);
void know_table(std::string_view role, std::string_view component, const void* table);

}  // namespace tenon::host
