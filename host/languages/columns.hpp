// SPDX-License-Identifier: Apache-2.0
#pragma once
// The small columns of an operator's row (abi/quant.md): quant, cast, recompute, coupling. Parsed
// once per row, handed out as tn_op_columns. Texts that the tables name are the row's own.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tenon/host/op_columns.h"

#include "languages/parse_error.hpp"

namespace tenon::host {

// What columns may refer to.
struct ColumnScope {
  std::optional<uint32_t> n_inputs;  // as the row's axes say; empty: any number
  std::function<bool(std::string_view)> has_attribute;
};

struct QuantColumn {
  uint32_t kind = TN_QUANT_FLOAT;
  std::vector<tn_quant_product> products;
  std::vector<tn_quant_stored> stored;
  int64_t rows = -1;
  uint64_t flags = 0;
};
Parsed<QuantColumn> parse_quant(std::string_view text, const ColumnScope& scope);

struct CastColumn {
  std::vector<tn_cast_rule> rules;
  uint64_t own_inputs = 0;
};
Parsed<CastColumn> parse_cast(std::string_view text, const ColumnScope& scope);

// is_cheap: what an empty column means, for the operator is pointwise or a view.
Parsed<uint32_t> parse_recompute(std::string_view text, bool is_cheap);

struct CouplingColumn {
  uint32_t family = TN_COUPLING_NONE;
  std::vector<tn_coupling_key> keys;
};
Parsed<CouplingColumn> parse_coupling(std::string_view text, const ColumnScope& scope);

struct Columns {
  QuantColumn quant;
  CastColumn cast;
  uint32_t recompute = TN_RECOMPUTE_EXPENSIVE;
  CouplingColumn coupling;

  tn_op_columns view() const;  // lives as long as this stays where it is
};

}  // namespace tenon::host
