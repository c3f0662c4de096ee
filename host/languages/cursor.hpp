// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads one line of ASCII text from left to right, for the parsers of axes and expr. Every question
// skips spaces first; a byte that no rule takes stays where it is and describe() names it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::host {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  size_t size() const { return text_.size(); }
  bool at_end() { return rest().empty(); }
  bool starts_with(std::string_view token) { return rest().starts_with(token); }
  bool starts_with_digit() { return !at_end() && is_digit(text_[at_]); }
  // No space between: marks belong to what stands before them.
  bool take_adjacent(std::string_view token) {
    return text_.substr(at_).starts_with(token) && skip(token);
  }
  bool take(std::string_view token) { return starts_with(token) && skip(token); }

  uint32_t column() {
    rest();
    return static_cast<uint32_t>(at_ + 1);
  }
  std::string_view peek_name() {
    const std::string_view left = rest();
    size_t length = 0;
    if (!left.empty() && is_letter(left[0]))
      while (length < left.size() && (is_letter(left[length]) || is_digit(left[length])))
        ++length;
    return left.substr(0, length);
  }
  std::string_view take_name() { return taken(peek_name().size()); }

  // digits [. digits] [e [+-] digits]
  std::string_view take_number() {
    const std::string_view left = rest();
    size_t length = digits(left, 0);
    if (left.substr(length).starts_with('.')) length = digits(left, length + 1);
    if (length < left.size() && (left[length] == 'e' || left[length] == 'E')) {
      size_t exponent = length + 1;
      if (exponent < left.size() && (left[exponent] == '+' || left[exponent] == '-')) ++exponent;
      if (digits(left, exponent) > exponent) length = digits(left, exponent);
    }
    return taken(length);
  }
  std::string_view take_digits() { return taken(digits(rest(), 0)); }

  // "..." without escapes; empty when it does not close.
  std::optional<std::string_view> take_quoted() {
    const size_t end = rest().find('"', 1);
    if (end == std::string_view::npos) return {};
    const std::string_view quoted = taken(end + 1);
    return quoted.substr(1, quoted.size() - 2);
  }

  std::string describe() {
    const std::string_view left = rest();
    if (left.empty()) return "end of text";
    if (const std::string_view name = peek_name(); !name.empty())
      return "'" + std::string(name.substr(0, 64)) + "'";
    const auto byte = static_cast<unsigned char>(left[0]);
    if (byte >= 0x20 && byte < 0x7f) return std::string("'") + left[0] + "'";
    return "byte " + std::to_string(byte);
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static size_t digits(std::string_view text, size_t from) {
    while (from < text.size() && is_digit(text[from]))
      ++from;
    return from;
  }
  std::string_view rest() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      ++at_;
    return text_.substr(at_);
  }
  bool skip(std::string_view token) {
    at_ += token.size();
    return true;
  }
  std::string_view taken(size_t length) {
    at_ += length;
    return text_.substr(at_ - length, length);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace tenon::host
