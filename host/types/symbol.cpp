// SPDX-License-Identifier: Apache-2.0
// Expressions over symbolic dimensions, as "seq/2+1": recursive descent, depth-limited.
#include "types/value_type.hpp"

namespace tenon::host {
namespace {

constexpr int kMaxDepth = 64;

class Reader {
 public:
  Reader(std::string_view text, const SymbolValue& value) : text_(text), value_(value) {}

  std::optional<int64_t> all() {
    std::optional<int64_t> result = sum(0);
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::optional<int64_t> sum(int depth) {
    std::optional<int64_t> left = product(depth);
    for (char op = peek(); left && (op == '+' || op == '-'); op = peek()) {
      ++at_;
      std::optional<int64_t> right = product(depth);
      int64_t out = 0;
      if (!right || (op == '+' ? __builtin_add_overflow(*left, *right, &out)
                               : __builtin_sub_overflow(*left, *right, &out)))
        return {};
      left = out;
    }
    return left;
  }

  std::optional<int64_t> product(int depth) {
    std::optional<int64_t> left = leaf(depth);
    for (char op = peek(); left && (op == '*' || op == '/'); op = peek()) {
      ++at_;
      std::optional<int64_t> right = leaf(depth);
      if (!right) return {};
      int64_t out = 0;
      if (op == '*') {
        if (__builtin_mul_overflow(*left, *right, &out)) return {};
      } else {
        if (*right == 0 || (*left == INT64_MIN && *right == -1)) return {};
        out = *left / *right - (*left % *right != 0 && (*left < 0) != (*right < 0));
      }
      left = out;
    }
    return left;
  }

  std::optional<int64_t> leaf(int depth) {
    if (depth > kMaxDepth) return {};
    char c = peek();
    if (c == '(') {
      ++at_;
      std::optional<int64_t> inner = sum(depth + 1);
      if (peek() != ')') return {};
      ++at_;
      return inner;
    }
    if (c == '-') {
      ++at_;
      std::optional<int64_t> inner = leaf(depth + 1);
      int64_t out = 0;
      if (!inner || __builtin_sub_overflow(int64_t{0}, *inner, &out)) return {};
      return out;
    }
    size_t begin = at_;
    while (at_ < text_.size() && std::string_view("+-*/() ").find(text_[at_]) == text_.npos)
      ++at_;
    return number_or_name(text_.substr(begin, at_ - begin));
  }

  std::optional<int64_t> number_or_name(std::string_view token) {
    if (token.empty()) return {};
    if (token[0] < '0' || token[0] > '9') return value_(token);
    int64_t number = 0;
    for (char c : token)
      if (c < '0' || c > '9' || __builtin_mul_overflow(number, 10, &number) ||
          __builtin_add_overflow(number, c - '0', &number))
        return {};
    return number;
  }

  std::string_view text_;
  const SymbolValue& value_;
  size_t at_ = 0;
};

}  // namespace

std::optional<int64_t> evaluate_symbol(std::string_view text, const SymbolValue& value) {
  // A name may hold any characters ("seq-len"): the whole text is tried as a name first.
  if (std::optional<int64_t> whole = value(text)) return whole;
  return Reader(text, value).all();
}

TypeRef substitute(const TypeRef& type, const SymbolValue& value) {
  if (!type || type->symbols.empty()) return type;
  Type out = *type;
  for (uint32_t i = 0; i < out.rank; ++i) {
    if (out.symbol(i).empty()) continue;
    std::optional<int64_t> number = evaluate_symbol(out.symbol(i), value);
    if (number && *number >= 0) out.dims[i] = *number;
  }
  return seal(std::move(out));
}

}  // namespace tenon::host
