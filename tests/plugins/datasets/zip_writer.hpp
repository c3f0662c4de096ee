// SPDX-License-Identifier: Apache-2.0
#pragma once
// Zip archives and npy arrays made byte by byte, as NumPy writes them.

#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

namespace tenon::test {

template <class T>
void append(std::string* out, T number) {
  out->append(reinterpret_cast<const char*>(&number), sizeof number);
}

inline std::string npy(std::string_view descr,
                       std::string_view shape,
                       std::string_view data,
                       bool fortran = false) {
  std::string header = "{'descr': " + std::string(descr) +
                       ", 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + std::string(shape) + ", }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\0';
  append(&out, static_cast<uint16_t>(header.size() + 1));
  return out + header + "\n" + std::string(data);
}

template <class T>
std::string bytes_of_numbers(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

inline std::string deflated(std::string_view data) {
  std::string out(data.size() + 1024, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct ZipMember {
  std::string name, data;
  bool deflate = false;
  bool zip64 = false;  // sizes and offset in the extra field, as NumPy does for large arrays
};

inline std::string zip(const std::vector<ZipMember>& members) {
  std::string out, directory;
  for (const ZipMember& member : members) {
    std::string packed = member.deflate ? deflated(member.data) : member.data;
    uint32_t crc =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(member.data.data()),
                                    static_cast<uInt>(member.data.size())));
    uint64_t offset = out.size();
    std::string common;
    append(&common, uint16_t{45});
    append(&common, uint16_t{0});
    append(&common, static_cast<uint16_t>(member.deflate ? 8 : 0));
    append(&common, uint32_t{0});
    append(&common, crc);
    append(&common, member.zip64 ? 0xffffffffu : static_cast<uint32_t>(packed.size()));
    append(&common, member.zip64 ? 0xffffffffu : static_cast<uint32_t>(member.data.size()));
    append(&common, static_cast<uint16_t>(member.name.size()));
    std::string extra;
    if (member.zip64) {
      append(&extra, uint16_t{1});
      append(&extra, uint16_t{24});
      append(&extra, uint64_t{member.data.size()});
      append(&extra, uint64_t{packed.size()});
      append(&extra, offset);
    }
    append(&common, static_cast<uint16_t>(extra.size()));
    out += "PK\x03\x04" + common + member.name + extra + packed;
    directory += "PK\x01\x02";
    append(&directory, uint16_t{45});
    directory += common;
    directory.append(10, '\0');  // comment, disk, attributes
    append(&directory, member.zip64 ? 0xffffffffu : static_cast<uint32_t>(offset));
    directory += member.name + extra;
  }
  uint32_t start = static_cast<uint32_t>(out.size());
  out += directory + "PK\x05\x06";
  out.append(4, '\0');
  append(&out, static_cast<uint16_t>(members.size()));
  append(&out, static_cast<uint16_t>(members.size()));
  append(&out, static_cast<uint32_t>(directory.size()));
  append(&out, start);
  append(&out, uint16_t{0});
  return out;
}

}  // namespace tenon::test
