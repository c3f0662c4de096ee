// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records of TensorBoard's event files (tensorflow/core/lib/io/record_writer.h and
// core/util/event.proto): the length, its checksum, an Event as protocol buffer, its checksum, all
// little endian. Checksums are CRC-32C (RFC 3720, appendix B.4), rotated and offset.

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::trainer {

inline uint32_t crc32c(std::string_view data) {
  uint32_t crc = 0xffffffff;
  for (char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}
inline uint32_t masked_crc32c(std::string_view data) {
  return std::rotr(crc32c(data), 15) + 0xa282ead8;
}

template <class T>
void put_bytes(std::string& to, T number) {
  for (size_t i = 0; i < sizeof number; ++i)
    to += static_cast<char>(number >> 8 * i & 0xff);
}
inline void put_varint(std::string& to, uint64_t number) {
  for (; number >= 0x80; number >>= 7)
    to += static_cast<char>((number & 0x7f) | 0x80);
  to += static_cast<char>(number);
}
inline void put_text(std::string& to, char tag, std::string_view text) {
  to += tag;
  put_varint(to, text.size());
  to += text;
}

inline std::string event_record(std::string_view event) {
  std::string length, out;
  put_bytes(length, static_cast<uint64_t>(event.size()));
  out = length;
  put_bytes(out, masked_crc32c(length));
  out += event;
  put_bytes(out, masked_crc32c(event));
  return out;
}

// What a file begins with.
inline std::string first_event(double wall_time) {
  std::string event{'\x09'};
  put_bytes(event, std::bit_cast<uint64_t>(wall_time));
  put_text(event, '\x1a', "brain.Event:2");
  return event_record(event);
}

inline std::string scalars_event(double wall_time,
                                 uint64_t step,
                                 const std::vector<std::pair<std::string, float>>& scalars) {
  std::string event{'\x09'}, summary;
  put_bytes(event, std::bit_cast<uint64_t>(wall_time));
  event += '\x10';
  put_varint(event, step);
  for (const auto& [tag, value] : scalars) {
    std::string one;
    put_text(one, '\x0a', tag);
    one += '\x15';
    put_bytes(one, std::bit_cast<uint32_t>(value));
    put_text(summary, '\x0a', one);
  }
  put_text(event, '\x2a', summary);
  return event_record(event);
}

}  // namespace tenon::trainer
