// SPDX-License-Identifier: Apache-2.0
#pragma once
// The type of a value: immutable, shared between the values and graphs that have it.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/type.h"

#include "services/status.hpp"

namespace tenon::host {

struct Type;
using TypeRef = std::shared_ptr<const Type>;

struct Type {
  uint32_t kind = TN_KIND_TENSOR;
  uint32_t dtype = TN_DTYPE_NONE;
  uint32_t rank = TN_RANK_UNKNOWN;
  std::vector<int64_t> dims;
  std::vector<std::string> symbols;  // empty, or [rank]

  Type() = default;
  Type(uint32_t dtype_in, std::vector<int64_t> dims_in, std::vector<std::string> symbols_in = {});
  std::string_view symbol(size_t i) const {
    return symbols.empty() ? std::string_view() : symbols[i];
  }
  bool known() const { return dtype != TN_DTYPE_NONE || rank != TN_RANK_UNKNOWN; }
  bool operator==(const Type& other) const;
  tn_type view() const;  // borrows from this

 private:
  mutable std::vector<tn_str> symbol_views_;  // made by seal()
  friend TypeRef seal(Type type);
};

TypeRef seal(Type type);  // checks nothing; canonical: no symbol at a known dimension
const TypeRef& unknown_type();
Result<TypeRef> read_type(const tn_type* type, std::string_view what);

std::string dtype_text(uint32_t dtype);  // "f32", or "dtype_N"
std::optional<uint32_t> read_dtype(std::string_view text);
std::string type_text(const Type& type);     // "f32[batch, 3, ?]"
bool plain_symbol(std::string_view symbol);  // prints without quotes
std::string in_quotes(std::string_view text);

// What is known twice agrees: an unknown dimension agrees with every number.
bool agree(const Type& a, const Type& b);
// `primary` with what it leaves open filled in from `secondary`, which must agree.
Type refine(const Type& primary, const Type& secondary);
// Bytes of a tensor of this type; TN_SIZE_UNKNOWN when a dimension is; nothing on overflow.
std::optional<uint64_t> size_of(const Type& type);

// Values of symbols. Expressions over them: numbers, names, + - * /, parentheses, where / rounds
// toward minus infinity.
using SymbolValue = std::function<std::optional<int64_t>(std::string_view name)>;
// Nothing when a name is unknown, or on a division by zero, an overflow or malformed text.
std::optional<int64_t> evaluate_symbol(std::string_view text, const SymbolValue& value);
TypeRef substitute(const TypeRef& type, const SymbolValue& value);

}  // namespace tenon::host
