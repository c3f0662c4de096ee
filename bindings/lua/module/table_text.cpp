// SPDX-License-Identifier: Apache-2.0
#include "table_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tenon::lua {
namespace {

// Letters, not bytes, of UTF-8 text.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string cell_text(const cxx::Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) {
    std::string text = value;
    std::replace_if(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
    return text;
  }
  if (!value.is_number_float()) return cxx::dump(value);
  double number = value;
  char text[64];
  const char* form = std::fabs(number) >= 1e-3 && std::fabs(number) < 1e6 ? "%.4f" : "%.3g";
  if (number == 0) form = "%.0f";
  if (std::fabs(number) >= 100 && std::fabs(number) < 1e6) form = "%.1f";
  std::snprintf(text, sizeof text, form, number);
  return text;
}

std::string table_text(const cxx::Json& rows, std::vector<std::string> columns) {
  if (columns.empty() && !rows.empty()) {
    for (const auto& [name, value] : rows.front().items())
      columns.push_back(name);
  }
  std::vector<std::vector<std::string>> cells{columns};
  std::vector<bool> numeric(columns.size(), true);
  for (const cxx::Json& row : rows) {
    std::vector<std::string> line;
    for (size_t i = 0; i < columns.size(); ++i) {
      cxx::Json value = row.is_object() ? row.value(columns[i], cxx::Json()) : cxx::Json();
      numeric[i] = numeric[i] && (value.is_number() || value.is_null());
      line.push_back(cell_text(value));
    }
    cells.push_back(std::move(line));
  }
  std::vector<size_t> widths(columns.size(), 0);
  for (const auto& line : cells)
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], width_of(line[i]));
  std::string text;
  for (const auto& line : cells) {
    std::string printed;
    for (size_t i = 0; i < line.size(); ++i) {
      std::string gap(widths[i] - width_of(line[i]), ' ');
      printed += (i ? "  " : "") + (numeric[i] ? gap + line[i] : line[i] + gap);
    }
    printed.erase(printed.find_last_not_of(' ') + 1);
    text += printed + "\n";
  }
  return text;
}

}  // namespace tenon::lua
