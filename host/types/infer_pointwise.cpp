// SPDX-License-Identifier: Apache-2.0
#include "types/infer_rules.hpp"

namespace tenon::host {
namespace {

// A truth value that was computed, which arithmetic takes as 0 or 1 of any type.
constexpr uint32_t kFlag = UINT32_MAX;

bool gives_flag(uint32_t op) {
  return (op >= TN_EXPR_EQ && op <= TN_EXPR_XOR) || op == TN_EXPR_NOT || op == TN_EXPR_ISNAN ||
         op == TN_EXPR_ISINF;
}
// The second operand may have a type of its own.
bool mixes(uint32_t op) {
  return op == TN_EXPR_POW || op == TN_EXPR_SHL || op == TN_EXPR_SHR || op == TN_EXPR_AND ||
         op == TN_EXPR_OR || op == TN_EXPR_XOR;
}

Result<uint32_t> join(uint32_t a, uint32_t b) {
  if (a == TN_DTYPE_NONE || a == kFlag) return b == TN_DTYPE_NONE ? a : b;
  if (b == TN_DTYPE_NONE || b == kFlag || a == b) return a;
  return invalid(cat("expected inputs of one type, got ", dtype_text(a), " and ", dtype_text(b)));
}

}  // namespace

void append(Type& type, const AxesDim& dim) {
  ++type.rank;
  type.dims.push_back(dim.size);
  type.symbols.push_back(dim.symbol);
}

Result<Type> broadcast_types(const std::vector<const Type*>& inputs, uint32_t dtype) {
  Type out;
  out.dtype = dtype;
  uint32_t rank = 0;
  for (const Type* input : inputs) {
    if (!input) continue;
    if (input->rank == TN_RANK_UNKNOWN) return out;
    rank = std::max(rank, input->rank);
  }
  out.rank = 0;
  for (uint32_t i = 0; i < rank; ++i) {
    AxesDim joined{1};
    for (const Type* input : inputs) {
      if (!input || input->rank + i < rank) continue;
      uint32_t at = input->rank + i - rank;
      std::optional<AxesDim> next =
          broadcast(joined, {input->dims[at], std::string(input->symbol(at))});
      if (!next)
        return invalid(cat("dimension ", i, " of ", rank, ": expected ", joined.size, " or 1, got ",
                           input->dims[at], " in ", type_text(*input)));
      joined = *next;
    }
    append(out, joined);
  }
  return out;
}

uint32_t compute_dtype(const std::vector<const Type*>& inputs) {
  uint32_t found = TN_DTYPE_NONE;
  for (const Type* input : inputs) {
    if (!input || input->dtype == TN_DTYPE_NONE) continue;
    if (input->dtype != TN_BOOL) return input->dtype;
    found = TN_BOOL;
  }
  return found;
}

Result<uint32_t> program_dtype(const tn_expr_program& program,
                               const std::vector<uint32_t>& inputs) {
  std::vector<uint32_t> types(program.count, TN_DTYPE_NONE);
  for (uint64_t i = 0; i < program.count; ++i) {
    const tn_expr_node& node = program.nodes[i];
    if (node.op == TN_EXPR_INPUT) {
      types[i] = node.a < inputs.size() ? inputs[node.a] : TN_DTYPE_NONE;
    } else if (node.op == TN_EXPR_SELECT) {
      TN_TRY(type, join(types[node.b], types[node.c]));
      types[i] = type;
    } else if (node.op >= TN_EXPR_ADD && node.op < TN_EXPR_SELECT && !mixes(node.op)) {
      TN_TRY(type, join(types[node.a], types[node.b]));
      types[i] = type;
    } else if (node.op != TN_EXPR_CONST) {
      types[i] = types[node.a];
    }
    if (gives_flag(node.op)) types[i] = kFlag;
  }
  uint32_t result = types.empty() ? TN_DTYPE_NONE : types.back();
  return result == kFlag ? TN_BOOL : result;
}

}  // namespace tenon::host
