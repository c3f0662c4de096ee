// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text into rows of cells, by RFC 4180: quoted cells may hold separators, line ends and doubled
// quotes. Every row must be as wide as the first.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/status.hpp"

namespace tenon::datasets {

struct CsvText {
  std::vector<std::string> cells;  // row by row
  std::vector<uint64_t> lines;     // line number of each row, from 1
  uint64_t width = 0;
  uint64_t rows() const { return lines.size(); }
  const std::string& at(uint64_t row, uint64_t column) const { return cells[row * width + column]; }
};

Result<CsvText> parse_csv(std::string_view text, char separator, const std::string& who);

}  // namespace tenon::datasets
