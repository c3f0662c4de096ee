// SPDX-License-Identifier: Apache-2.0
#include "text/lexer.hpp"

#include <algorithm>

namespace tenon::host {
namespace {

bool alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

void TextLexer::skip() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

bool TextLexer::ahead(std::string_view mark) {
  skip();
  if (text_.substr(at_, mark.size()) != mark) return false;
  size_t end = at_ + mark.size();
  bool is_word = alphanumeric(mark.back());
  return !is_word || end == text_.size() || !(alphanumeric(text_[end]) || text_[end] == '_');
}

bool TextLexer::accept(std::string_view mark) {
  if (!ahead(mark)) return false;
  at_ += mark.size();
  return true;
}

Status TextLexer::expect(std::string_view mark) {
  return accept(mark) ? Status() : error(cat("'", mark, "'"));
}

Status TextLexer::error(std::string_view expected) {
  skip();
  auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<int64_t>(at_), '\n');
  size_t begin = at_ == 0 ? 0 : text_.rfind('\n', at_ - 1) + 1;
  std::string got =
      at_ == text_.size()
          ? "the end"
          : cat("'", text_.substr(at_, std::min<size_t>(text_.substr(at_).find('\n'), 20)), "'");
  return invalid(cat("graph text: line ", line, ", column ", at_ - begin + 1, ": expected ",
                     expected, ", got ", got));
}

Result<std::string> TextLexer::quoted_text() {
  if (!ahead("\"")) return error("a quoted text");
  std::string out;
  for (size_t i = at_ + 1; i < text_.size(); ++i) {
    char c = text_[i];
    if (c == '"') {
      at_ = i + 1;
      return out;
    }
    if (c != '\\') {
      out += c;
      continue;
    }
    char next = i + 1 < text_.size() ? text_[i + 1] : '\0';
    int high = next == 'x' && i + 3 < text_.size() ? hex_digit(text_[i + 2]) : -1;
    int low = high >= 0 ? hex_digit(text_[i + 3]) : -1;
    if (next == '"' || next == '\\') {
      out += next;
      i += 1;
    } else if (low >= 0) {
      out += static_cast<char>(high << 4 | low);
      i += 3;
    } else {
      return error("a text with \\\", \\\\ or \\xNN after each backslash");
    }
  }
  return error("a quoted text with its end");
}

std::string_view TextLexer::take_while(std::string_view more) {
  skip();
  size_t begin = at_;
  while (at_ < text_.size() && (alphanumeric(text_[at_]) || more.find(text_[at_]) != more.npos))
    ++at_;
  return text_.substr(begin, at_ - begin);
}

Result<std::string> TextLexer::name() {
  if (ahead("\"")) return quoted_text();
  std::string_view plain = take_while("_./-");
  if (plain.empty()) return error("a name");
  return std::string(plain);
}

std::string_view TextLexer::word() {
  return take_while("_");
}
std::string_view TextLexer::number() {
  return take_while("+-.");
}

std::string_view TextLexer::until(std::string_view stops) {
  skip();
  size_t end = std::min(text_.find_first_of(stops, at_), text_.size());
  std::string_view out = text_.substr(at_, end - at_);
  at_ = end;
  while (!out.empty() && out.back() == ' ')
    out.remove_suffix(1);
  return out;
}

}  // namespace tenon::host
