// SPDX-License-Identifier: Apache-2.0
#include "types/value_type.hpp"

#include <algorithm>
#include <cstddef>

#include "values/dtype.hpp"

namespace tenon::host {
namespace {

bool word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

Type::Type(uint32_t dtype_in, std::vector<int64_t> dims_in, std::vector<std::string> symbols_in)
    : dtype(dtype_in),
      rank(static_cast<uint32_t>(dims_in.size())),
      dims(std::move(dims_in)),
      symbols(std::move(symbols_in)) {}

bool Type::operator==(const Type& other) const {
  return kind == other.kind && dtype == other.dtype && rank == other.rank && dims == other.dims &&
         symbols == other.symbols;
}

tn_type Type::view() const {
  return {sizeof(tn_type), kind,
          dtype,           rank,
          dims.data(),     symbol_views_.empty() ? nullptr : symbol_views_.data()};
}

TypeRef seal(Type type) {
  if (type.rank == TN_RANK_UNKNOWN) type.dims.clear(), type.symbols.clear();
  for (size_t i = 0; i < type.symbols.size(); ++i)
    if (type.dims[i] >= 0) type.symbols[i].clear();
  auto named = [](const std::string& symbol) { return !symbol.empty(); };
  if (std::none_of(type.symbols.begin(), type.symbols.end(), named)) type.symbols.clear();
  auto sealed = std::make_shared<Type>(std::move(type));
  sealed->symbol_views_.clear();
  for (const std::string& symbol : sealed->symbols)
    sealed->symbol_views_.push_back(str(symbol));
  return sealed;
}

const TypeRef& unknown_type() {
  static const TypeRef type = seal({});
  return type;
}

Result<TypeRef> read_type(const tn_type* from, std::string_view what) {
  if (!from || from->struct_size < offsetof(tn_type, dims))
    return invalid(cat(what, ": expected a tn_type with its struct_size set, got ",
                       from ? cat("size ", from->struct_size) : std::string("null")));
  Type type;
  type.kind = from->kind;
  type.dtype = from->dtype;
  type.rank = from->rank;
  if (type.kind > TN_KIND_OPTIONAL)
    return invalid(cat(what, ": expected kind 0..2, got ", type.kind));
  if (type.rank == TN_RANK_UNKNOWN) return seal(std::move(type));
  if (type.rank > kMaxRank)
    return invalid(cat(what, ": expected at most ", kMaxRank, " dimensions, got ", type.rank));
  if (type.rank > 0 && !from->dims) return invalid(cat(what, ": dims: expected a list, got null"));
  type.dims.assign(from->dims, from->dims + type.rank);
  for (int64_t dim : type.dims)
    if (dim < TN_DIM_UNKNOWN)
      return invalid(cat(what, ": dims: expected numbers from -1 up, got ", dim));
  if (from->struct_size >= offsetof(tn_type, symbols) + sizeof from->symbols && from->symbols)
    for (uint32_t i = 0; i < type.rank; ++i)
      type.symbols.emplace_back(view(from->symbols[i]));
  return seal(std::move(type));
}

std::string dtype_text(uint32_t dtype) {
  if (dtype == TN_DTYPE_NONE) return "?";
  return dtype_known(dtype) ? dtype_name(dtype) : cat("dtype_", dtype);
}

std::optional<uint32_t> read_dtype(std::string_view text) {
  if (text == "?") return TN_DTYPE_NONE;
  if (uint32_t known = dtype_by_name(text)) return known;
  constexpr std::string_view kPrefix = "dtype_";
  if (text.substr(0, kPrefix.size()) != kPrefix) return {};
  uint64_t number = 0;
  for (char c : text.substr(kPrefix.size())) {
    if (!digit(c) || number > UINT32_MAX) return {};
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  if (number == 0 || number > UINT32_MAX) return {};
  return static_cast<uint32_t>(number);
}

bool plain_symbol(std::string_view symbol) {
  auto allowed = [](char c) {
    return word(c) || digit(c) || std::string_view("+-*/().").find(c) != std::string_view::npos;
  };
  return !symbol.empty() && word(symbol[0]) && std::all_of(symbol.begin(), symbol.end(), allowed);
}

std::string in_quotes(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string type_text(const Type& type) {
  std::string out = type.kind == TN_KIND_SEQUENCE   ? "seq "
                    : type.kind == TN_KIND_OPTIONAL ? "opt "
                                                    : "";
  out += dtype_text(type.dtype);
  if (type.rank == TN_RANK_UNKNOWN) return out + "[*]";
  out += '[';
  for (uint32_t i = 0; i < type.rank; ++i) {
    if (i > 0) out += ", ";
    std::string_view symbol = type.symbol(i);
    if (type.dims[i] >= 0) {
      out += std::to_string(type.dims[i]);
    } else if (symbol.empty()) {
      out += '?';
    } else {
      out += plain_symbol(symbol) ? std::string(symbol) : in_quotes(symbol);
    }
  }
  return out + ']';
}

bool agree(const Type& a, const Type& b) {
  if (!a.known() || !b.known()) return true;
  if (a.kind != b.kind) return false;
  if (a.dtype != b.dtype && a.dtype != TN_DTYPE_NONE && b.dtype != TN_DTYPE_NONE) return false;
  if (a.rank == TN_RANK_UNKNOWN || b.rank == TN_RANK_UNKNOWN) return true;
  if (a.rank != b.rank) return false;
  for (uint32_t i = 0; i < a.rank; ++i)
    if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i]) return false;
  return true;
}

Type refine(const Type& primary, const Type& secondary) {
  if (!primary.known()) return secondary;
  Type type = primary;
  if (type.dtype == TN_DTYPE_NONE) type.dtype = secondary.dtype;
  if (secondary.rank == TN_RANK_UNKNOWN) return type;
  if (type.rank == TN_RANK_UNKNOWN) {
    type.rank = secondary.rank;
    type.dims = secondary.dims;
    type.symbols = secondary.symbols;
    return type;
  }
  for (uint32_t i = 0; i < type.rank; ++i) {
    if (type.dims[i] >= 0 || !type.symbol(i).empty()) continue;
    type.dims[i] = secondary.dims[i];
    if (secondary.symbol(i).empty()) continue;
    type.symbols.resize(type.rank);
    type.symbols[i] = secondary.symbol(i);
  }
  // A number is worth more than a name.
  for (uint32_t i = 0; i < type.rank; ++i)
    if (type.dims[i] < 0) type.dims[i] = secondary.dims[i];
  return type;
}

std::optional<uint64_t> size_of(const Type& type) {
  if (type.rank == TN_RANK_UNKNOWN || type.dtype == TN_DTYPE_NONE) return TN_SIZE_UNKNOWN;
  bool unknown = false;
  bool empty = false;
  uint64_t bits = TN_DTYPE_BITS(type.dtype);
  for (int64_t dim : type.dims) {
    unknown |= dim < 0;
    empty |= dim == 0;
  }
  if (empty) return 0;
  for (int64_t dim : type.dims)
    if (dim > 0 && __builtin_mul_overflow(bits, static_cast<uint64_t>(dim), &bits)) return {};
  if (bits / 8 > INT64_MAX) return {};
  return unknown ? TN_SIZE_UNKNOWN : (bits / 8 + (bits % 8 != 0));
}

}  // namespace tenon::host
