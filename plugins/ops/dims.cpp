// SPDX-License-Identifier: Apache-2.0
#include "dims.hpp"

#include <algorithm>
#include <charconv>

namespace tenon::ops {
namespace {

constexpr std::string_view kNote = "tenon.dims";
constexpr size_t kLongestContents = 1024;  // longer tensors hold data, not shapes
constexpr size_t kLongestSymbol = 200;     // longer texts help nobody

bool is_compound(std::string_view text) {
  return text.find_first_of("+-*/") != std::string_view::npos;
}
std::string grouped(std::string_view text) {
  return is_compound(text) ? cat("(", text, ")") : std::string(text);
}
// Operators outside of parentheses.
bool has_top_level(std::string_view text, std::string_view operators) {
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    if (depth == 0 && operators.find(c) != std::string_view::npos) return true;
  }
  return false;
}

// "seq+3" is {"seq", '+', 3}; without a trailing number of these operators: {text, 0, 0}.
struct Tail {
  std::string_view base;
  char op = 0;
  int64_t number = 0;
};
Tail split_tail(std::string_view text, std::string_view operators) {
  size_t at = text.find_last_not_of("0123456789");
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size()) return {text};
  if (operators.find(text[at]) == std::string_view::npos) return {text};
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {text};
  return {text.substr(0, at), text[at], number};
}

Dim symbolic(std::string text) {
  return text.size() > kLongestSymbol ? Dim() : Dim(std::move(text));
}

Dim plus_number(const std::string& symbol, int64_t number) {
  Tail tail = split_tail(symbol, "+-");
  std::string_view base = tail.op ? tail.base : std::string_view(symbol);
  int64_t sum = number;
  if (tail.op && __builtin_add_overflow(number, tail.op == '+' ? tail.number : -tail.number, &sum))
    return {};
  if (sum == 0) return symbolic(std::string(base));
  return symbolic(sum > 0 ? cat(base, "+", sum) : cat(base, sum));
}

Dim times_number(const std::string& symbol, int64_t number) {
  if (number == 1) return Dim(symbol);
  if (number == 0) return 0;
  if (number < 0) return {};
  Tail tail = split_tail(symbol, "*");
  if (tail.op && !has_top_level(tail.base, "+-/")) {
    int64_t both = 0;
    if (__builtin_mul_overflow(number, tail.number, &both)) return {};
    return symbolic(cat(tail.base, "*", both));
  }
  return symbolic(cat(grouped(symbol), "*", number));
}

Dim over_number(const std::string& symbol, int64_t number) {
  if (number == 1) return Dim(symbol);
  if (number <= 0) return {};
  Tail tail = split_tail(symbol, "*/");
  bool plain = tail.op && !has_top_level(tail.base, "+-/");
  if (plain && tail.op == '*' && tail.number % number == 0) {
    std::string base(tail.base);
    return times_number(base, tail.number / number);
  }
  if (plain && tail.op == '/') return symbolic(cat(tail.base, "/", tail.number * number));
  return symbolic(cat(grouped(symbol), "/", number));
}

Dim parse_dim(std::string_view text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return Dim(std::string(text));
}

}  // namespace

Dim operator+(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    int64_t sum = 0;
    return __builtin_add_overflow(*a.value, *b.value, &sum) ? Dim() : Dim(sum);
  }
  if (a.known() || b.known()) {
    const Dim& symbol = a.known() ? b : a;
    return symbol.symbol.empty() ? Dim()
                                 : plus_number(symbol.symbol, a.known() ? *a.value : *b.value);
  }
  if (a.symbol.empty() || b.symbol.empty()) return {};
  return symbolic(cat(a.symbol, "+", b.symbol));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (b.known()) return *b.value == INT64_MIN ? Dim() : a + Dim(-*b.value);
  if (a == b) return 0;
  if (b.symbol.empty() || (!a.known() && a.symbol.empty())) return {};
  // a+5 - a
  Tail tail = split_tail(a.symbol, "+-");
  if (tail.op && tail.base == b.symbol) return tail.op == '+' ? tail.number : -tail.number;
  std::string left = a.known() ? std::to_string(*a.value) : a.symbol;
  return symbolic(cat(left, "-", grouped(b.symbol)));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    int64_t out = 0;
    return __builtin_mul_overflow(*a.value, *b.value, &out) ? Dim() : Dim(out);
  }
  if (a.known() || b.known()) {
    const Dim& symbol = a.known() ? b : a;
    int64_t number = a.known() ? *a.value : *b.value;
    if (number == 0) return 0;
    return symbol.symbol.empty() ? Dim() : times_number(symbol.symbol, number);
  }
  if (a.symbol.empty() || b.symbol.empty()) return {};
  return symbolic(cat(grouped(a.symbol), "*", grouped(b.symbol)));
}

Dim floor_divide(const Dim& a, const Dim& b) {
  if (a == b && !a.is(0)) return 1;
  if (!b.known() || *b.value == 0) return {};
  if (!a.known()) return a.symbol.empty() ? Dim() : over_number(a.symbol, *b.value);
  if (*b.value == -1) return Dim(0) - a;
  int64_t q = *a.value / *b.value;
  return q - (*a.value % *b.value != 0 && (*a.value < 0) != (*b.value < 0));
}

Dim product(const Dims& dims) {
  Dim out = 1;
  for (const Dim& dim : dims) {
    if (dim.is(0)) return 0;
  }
  // Numbers last, so that equal products are equal texts.
  for (bool numbers : {false, true}) {
    for (const Dim& dim : dims) {
      if (dim.known() == numbers) out = out.is(1) ? dim : out * dim;
    }
  }
  return out;
}

Dim quotient(Dims all, Dims part) {
  for (auto p = part.begin(); p != part.end();) {
    auto match = std::find(all.begin(), all.end(), *p);
    if (match == all.end() || p->is(0)) {
      ++p;
    } else {
      all.erase(match);
      p = part.erase(p);
    }
  }
  // Numbers that divide numbers first: "n*4*6 over 8" is "n*3".
  Dims numbers, symbols;
  for (const Dim& dim : all)
    (dim.known() ? numbers : symbols).push_back(dim);
  Dim number = product(numbers), below = product(part);
  if (number.known() && below.known() && *below.value > 0) {
    if (*number.value % *below.value == 0) {
      symbols.push_back(*number.value / *below.value);
      return product(symbols);
    }
  }
  return floor_divide(product(all), below);
}

std::optional<Dim> broadcast(const Dim& a, const Dim& b) {
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  if (a.known() && b.known()) return a == b ? std::optional(a) : std::nullopt;
  if (a.known()) return a;  // known and not 1: the other must become it
  if (b.known()) return b;
  return a == b ? a : Dim();
}

Dims dims_of(const Type& type) {
  Dims out;
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (type.dims[i] >= 0) {
      out.emplace_back(type.dims[i]);
    } else {
      out.emplace_back(type.symbols.empty() ? std::string() : type.symbols[i]);
    }
  }
  return out;
}

Type type_of(uint32_t dtype, const Dims& dims) {
  Type out(dtype, {});
  for (const Dim& dim : dims) {
    bool valid = dim.known() && *dim.value >= 0;
    out.dims.push_back(valid ? *dim.value : TN_DIM_UNKNOWN);
    out.symbols.push_back(dim.known() ? std::string() : dim.symbol);
  }
  return out;
}

Type unranked(uint32_t dtype) {
  Type out;
  out.dtype = dtype;
  return out;
}

std::optional<Dims> contents(Value value) {
  if (!value) return {};
  if (value.is_constant()) {
    Tensor tensor = value.constant();
    DLTensor raw = tensor.dl();
    uint32_t dtype = dtype_of(raw);
    int64_t count = element_count(raw);
    if (raw.ndim > 1 || count > int64_t(kLongestContents)) return {};
    if (dtype != TN_I64 && dtype != TN_I32) return {};
    Dims out;
    for (int64_t i = 0; i < count; ++i) {
      out.emplace_back(dtype == TN_I64 ? data_of<const int64_t>(raw)[i]
                                       : int64_t{data_of<const int32_t>(raw)[i]});
    }
    return out;
  }
  tn_any note = value.note(kNote);
  if (note.tag == TN_ANY_TEXTS) {
    Dims out;
    for (const std::string& text : texts_of(note))
      out.push_back(parse_dim(text));
    return out;
  }
  Type type = value.type();
  bool countable = type.is_static() && type.rank() <= 1 && type.elements() <= 64 &&
                   (type.dtype == TN_I64 || type.dtype == TN_I32);
  if (!countable) return {};
  return Dims(static_cast<size_t>(type.elements()));
}

Status set_contents(EditView edit, Value value, const std::optional<Dims>& dims) {
  bool useful = dims && dims->size() <= kLongestContents &&
                std::any_of(dims->begin(), dims->end(),
                            [](const Dim& dim) { return dim.known() || !dim.symbol.empty(); });
  if (!useful) {
    if (value.note(kNote).tag == TN_ANY_NONE) return {};
    return edit.set_note(value.id, kNote, tn_any{});
  }
  std::vector<std::string> texts;
  for (const Dim& dim : *dims)
    texts.push_back(dim.known() ? std::to_string(*dim.value) : dim.symbol);
  std::vector<tn_str> list;
  for (const std::string& text : texts)
    list.push_back(str(text));
  return edit.set_note(value.id, kNote, any_texts(list));
}

std::optional<std::vector<int64_t>> known_ints(Value value) {
  std::optional<Dims> dims = contents(value);
  return dims ? known_ints(*dims) : std::nullopt;
}

std::optional<std::vector<int64_t>> known_ints(const Dims& dims) {
  std::vector<int64_t> out;
  for (const Dim& dim : dims) {
    if (!dim.known()) return {};
    out.push_back(*dim.value);
  }
  return out;
}

Status set_output(EditView edit, Node node, uint64_t i, const Type& type) {
  return node.output(i) ? edit.set_type(node.output(i), type) : Status();
}
Status set_output(EditView edit, Node node, uint64_t i, uint32_t dtype, const Dims& dims) {
  return set_output(edit, node, i, type_of(dtype, dims));
}

Status same_as_input(EditView edit, Node node) {
  TN_CHECK(set_output(edit, node, 0, node.input(0).type()));
  return set_contents(edit, node.output(0), contents(node.input(0)));
}

Result<Type> broadcast_type(uint32_t dtype, const std::vector<Value>& inputs) {
  Dims joined;
  for (Value input : inputs) {
    if (!input) continue;
    Type type = input.type();
    if (!type.ranked) return unranked(dtype);
    Dims dims = dims_of(type);
    if (dims.size() > joined.size()) joined.insert(joined.begin(), dims.size() - joined.size(), 1);
    size_t shift = joined.size() - dims.size();
    for (size_t i = 0; i < dims.size(); ++i) {
      std::optional<Dim> both = broadcast(joined[shift + i], dims[i]);
      if (!both) {
        return invalid(cat("shapes do not broadcast: axis ", i, " of input ", input.name(),
                           " expected ", *joined[shift + i].value, " or 1, got ", *dims[i].value));
      }
      joined[shift + i] = *both;
    }
  }
  return type_of(dtype, joined);
}

Status expect_no_inputs(Node node) {
  if (node.n_inputs() == 0) return {};
  return invalid(cat("expected no inputs, got ", node.n_inputs()));
}

Status expect_broadcast(Node node, uint64_t i, const Dims& shape) {
  Type type = node.input(i).type();
  if (!node.input(i) || !type.ranked) return {};
  if (type.rank() > shape.size())
    return invalid(
        cat("input ", i, ": expected at most ", shape.size(), " axes, got ", type.rank()));
  for (size_t axis = 0; axis < type.rank(); ++axis) {
    const Dim& wanted = shape[shape.size() - type.rank() + axis];
    int64_t got = type.dims[axis];
    if (got >= 0 && got != 1 && wanted.known() && !wanted.is(got))
      return invalid(cat("input ", i, " axis ", axis, ": expected 1",
                         wanted.is(1) ? "" : cat(" or ", *wanted.value), ", got ", got));
  }
  return {};
}

Result<Dims> product_dims(Dims left, Dims right) {
  if (left.empty() || right.empty()) return invalid("expected inputs of rank from 1, got a scalar");
  bool is_row = left.size() == 1, is_column = right.size() == 1;
  if (is_row) left.insert(left.begin(), 1);
  if (is_column) right.push_back(1);
  Dim k = left.back(), inner = right[right.size() - 2], m = left[left.size() - 2], n = right.back();
  if (k.known() && inner.known() && !(k == inner))
    return invalid(
        cat("inner dimensions: expected equal ones, got ", *k.value, " and ", *inner.value));
  left.resize(left.size() - 2);
  right.resize(right.size() - 2);
  size_t rank = std::max(left.size(), right.size());
  left.insert(left.begin(), rank - left.size(), 1);
  right.insert(right.begin(), rank - right.size(), 1);
  Dims out;
  for (size_t i = 0; i < rank; ++i) {
    std::optional<Dim> both = broadcast(left[i], right[i]);
    if (!both)
      return invalid(
          cat("batch axis ", i, ": expected ", *left[i].value, " or 1, got ", *right[i].value));
    out.push_back(*both);
  }
  if (!is_row) out.push_back(m);
  if (!is_column) out.push_back(n);
  return out;
}

Result<int64_t> axis_in(int64_t axis, size_t rank, std::string_view what) {
  auto size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size) {
    return invalid(cat(what, ": expected a number in -", size, "..", size - 1, ", got ", axis));
  }
  return positive_axis(axis, rank);
}

}  // namespace tenon::ops
