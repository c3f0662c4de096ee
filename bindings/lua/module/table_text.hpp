// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables for people: rows of named values as aligned columns, numbers to the right.

#include <string>
#include <vector>

#include "tenon/cxx/session.hpp"

namespace tenon::lua {

// rows: JSON objects. columns empty: the names in the first row, in order.
std::string table_text(const cxx::Json& rows, std::vector<std::string> columns = {});
// A number as people read it: four significant digits, whole numbers whole.
std::string cell_text(const cxx::Json& value);

}  // namespace tenon::lua
