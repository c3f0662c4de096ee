// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: text that is UTF-8, whatever its bytes are. Names come from files, and a
// message that is cut may end amid a character. Host and SDK include it. Pure functions: any thread.
// RFC 3629, section 4.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

// Bytes of the character that the text begins with; 0: it begins with none.
constexpr size_t character_bytes(std::string_view text) {
  const auto byte = [text](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const uint32_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint32_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  const size_t n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (size_t i = 2; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return n;
}

// The text with U+FFFD in place of each byte that belongs to no character.
inline std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t n = character_bytes(text);
    out += n ? text.substr(0, n) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(n ? n : 1);
  }
  return out;
}

}  // namespace tenon
