// SPDX-License-Identifier: Apache-2.0
#pragma once
// The way of text to the user's terminal. Names of files, models and plugins are whatever somebody
// wrote into them: what a terminal would obey is shown instead, as \u001b.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

namespace tenon::cxx {

// The character of UTF-8 that the text begins with, and its length; -1 where it is none.
inline int32_t first_character(std::string_view text, size_t* length) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  *length = 1;
  if (byte(0) < 0x80) return byte(0);
  size_t more = byte(0) >= 0xf0 ? 3 : byte(0) >= 0xe0 ? 2 : 1;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() <= more) return -1;
  int32_t character = byte(0) & (0x3f >> more);
  for (size_t i = 1; i <= more; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return -1;
    character = character << 6 | (byte(i) & 0x3f);
  }
  *length = more + 1;
  return character;
}

// Controls of C0 and C1, and marks that turn the direction of writing: a text with them looks like
// another one, or does something.
inline bool is_obeyed(int32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

enum class Lines { kMany, kOne };

// The text as a terminal may have it. Breaks and tabs stay in a text of many lines and are spaces
// in one line. JSON stays the same JSON: its strings can say \u001b too.
inline std::string visible(std::string_view text, Lines lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0, length = 1; at < text.size(); at += length) {
    int32_t c = first_character(text.substr(at), &length);
    char shown[16];
    if (c == '\n' || c == '\t' || c == '\r') {
      if (lines == Lines::kOne || c == '\r') {
        out += ' ';
      } else {
        out += static_cast<char>(c);
      }
    } else if (c >= 0 && !is_obeyed(c)) {
      out += text.substr(at, length);
    } else {
      std::snprintf(shown, sizeof shown, c < 0 ? "\\x%02x" : "\\u%04x",
                    c < 0 ? static_cast<unsigned char>(text[at]) : static_cast<unsigned>(c));
      out += shown;
    }
  }
  return out;
}

// To standard output; false where it cannot be written to.
inline bool print_text(std::string_view text) {
  std::string shown = visible(text, Lines::kMany);
  return std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() &&
         std::fflush(stdout) == 0;
}

// Whether standard error is a terminal that obeys: a bar can be drawn over there.
inline bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) && !(kind && std::string_view(kind) == "dumb");
}

// A line to standard error, in one piece and past all locks: any thread may be the last one.
inline void complain_of(std::string_view text) {
  std::string line = visible(text, Lines::kOne) + "\n";
  if (is_terminal()) line.insert(0, "\r\033[K");  // over a progress bar
  std::string_view left = line;
  while (!left.empty()) {
    ssize_t written = ::write(STDERR_FILENO, left.data(), left.size());
    if (written <= 0) return;
    left.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace tenon::cxx
