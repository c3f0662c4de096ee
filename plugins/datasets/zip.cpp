// SPDX-License-Identifier: Apache-2.0
#include "zip.hpp"

#include <algorithm>
#include <limits>

#include <zlib.h>

namespace tenon::datasets {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint32_t kIn64 = 0xffffffff;    // the number is in the zip64 record
constexpr uint64_t kMaxExpansion = 1100;  // deflate cannot do more than 1032:1

struct Directory {
  uint64_t offset = 0, bytes = 0, count = 0;
};

// The end record sits in the last 22 bytes, or before a comment of up to 65,535.
Result<uint64_t> find_end(const File& file) {
  std::string_view bytes = file.bytes();
  if (bytes.size() < 22) return file.fault("truncated zip: no end record");
  uint64_t last = bytes.size() - 22;
  uint64_t lowest = last > 0xffff ? last - 0xffff : 0;
  for (uint64_t at = last + 1; at-- > lowest;)
    if (little<uint32_t>(bytes, at) == kEnd) return at;
  return file.fault("truncated zip: no end record");
}

Result<Directory> find_directory(const File& file) {
  std::string_view bytes = file.bytes();
  TN_TRY(end, find_end(file));
  Directory out{little<uint32_t>(bytes, end + 16), little<uint32_t>(bytes, end + 12),
                little<uint16_t>(bytes, end + 10)};
  bool wants64 = out.offset == kIn64 || out.bytes == kIn64 || out.count == 0xffff;
  if (wants64 && end >= 20 && little<uint32_t>(bytes, end - 20) == kEnd64Locator) {
    uint64_t at = little<uint64_t>(bytes, end - 20 + 8);
    if (!holds(bytes, at, 56) || little<uint32_t>(bytes, at) != kEnd64)
      return file.fault("broken zip64: its end record is not where the locator says");
    out = {little<uint64_t>(bytes, at + 48), little<uint64_t>(bytes, at + 40),
           little<uint64_t>(bytes, at + 32)};
  }
  if (!holds(bytes, out.offset, out.bytes))
    return file.fault("broken zip: its directory lies outside the file");
  return out;
}

// Extra field 1 holds, in this order, those of size, packed and header that are kIn64.
Status read_extra64(const File& file, std::string_view extra, ZipEntry* entry) {
  while (extra.size() >= 4) {
    uint16_t id = little<uint16_t>(extra, 0), len = little<uint16_t>(extra, 2);
    if (!holds(extra, 4, len)) break;
    std::string_view body = extra.substr(4, len);
    extra.remove_prefix(4u + len);
    if (id != 1) continue;
    for (uint64_t* field : {&entry->size, &entry->packed, &entry->header}) {
      if (*field != kIn64) continue;
      if (body.size() < 8) return file.fault(cat("entry ", entry->name, ": broken zip64 record"));
      *field = little<uint64_t>(body, 0);
      body.remove_prefix(8);
    }
  }
  return {};
}

Status check_entry(const File& file, const ZipEntry& entry, uint16_t flags) {
  std::string who = cat("entry ", entry.name, ": ");
  if (flags & 1) return file.fault(cat(who, "encrypted, which is not supported"));
  if (entry.method != 0 && entry.method != 8)
    return file.fault(cat(who, "expected stored or deflated, got zip method ", entry.method));
  if (entry.method == 0 && entry.packed != entry.size)
    return file.fault(cat(who, "stored with two different sizes"));
  if (entry.size / kMaxExpansion > entry.packed)
    return file.fault(cat(who, "says it unpacks to ", entry.size, " bytes, which its ",
                          entry.packed, " packed bytes cannot hold"));
  return {};
}

}  // namespace

bool looks_like_zip(std::string_view bytes) {
  if (bytes.size() < 4) return false;
  uint32_t magic = little<uint32_t>(bytes, 0);
  return magic == kLocal || magic == kEnd;
}

Result<std::vector<ZipEntry>> zip_entries(const File& file) {
  std::string_view bytes = file.bytes();
  TN_TRY(directory, find_directory(file));
  std::vector<ZipEntry> out;
  uint64_t at = directory.offset;
  uint64_t stop = directory.offset + directory.bytes;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (stop - at < 46 || little<uint32_t>(bytes, at) != kCentral)
      return file.fault(cat("broken zip: directory entry ", i, " of ", directory.count));
    uint64_t name = little<uint16_t>(bytes, at + 28), extra = little<uint16_t>(bytes, at + 30);
    uint64_t comment = little<uint16_t>(bytes, at + 32);
    if (stop - at - 46 < name + extra + comment)
      return file.fault(cat("broken zip: directory entry ", i, " is cut off"));
    ZipEntry entry;
    entry.name = bytes.substr(at + 46, name);
    entry.method = little<uint16_t>(bytes, at + 10);
    entry.crc = little<uint32_t>(bytes, at + 16);
    entry.packed = little<uint32_t>(bytes, at + 20);
    entry.size = little<uint32_t>(bytes, at + 24);
    entry.header = little<uint32_t>(bytes, at + 42);
    TN_CHECK(read_extra64(file, bytes.substr(at + 46 + name, extra), &entry));
    TN_CHECK(check_entry(file, entry, little<uint16_t>(bytes, at + 8)));
    out.push_back(std::move(entry));
    at += 46 + name + extra + comment;
  }
  return out;
}

namespace {

Status inflate_into(const File& file,
                    const ZipEntry& entry,
                    std::string_view packed,
                    std::string* room) {
  room->resize(entry.size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return {TN_RESOURCE_EXHAUSTED, "zlib: no memory"};
  uint64_t in = 0, out = 0;
  int code = Z_OK;
  constexpr uint64_t kChunk = std::numeric_limits<uInt>::max();  // zlib counts in 32 bits
  while (code == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in));
    stream.next_out = reinterpret_cast<Bytef*>(room->data() + out);
    uInt give = static_cast<uInt>(std::min(kChunk, packed.size() - in));
    uInt take = static_cast<uInt>(std::min(kChunk, entry.size - out));
    stream.avail_in = give;
    stream.avail_out = take;
    code = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    out += take - stream.avail_out;
    if (give == stream.avail_in && take == stream.avail_out && code == Z_OK) break;
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END || out != entry.size)
    return file.fault(cat("entry ", entry.name, ": broken or truncated deflate data"));
  return {};
}

}  // namespace

Result<std::string_view> zip_read(const File& file, const ZipEntry& entry, std::string* room) {
  std::string_view bytes = file.bytes();
  if (!holds(bytes, entry.header, 30) || little<uint32_t>(bytes, entry.header) != kLocal)
    return file.fault(cat("entry ", entry.name, ": its header lies outside the file"));
  uint64_t start = entry.header + 30 + little<uint16_t>(bytes, entry.header + 26) +
                   little<uint16_t>(bytes, entry.header + 28);
  if (!holds(bytes, start, entry.packed))
    return file.fault(cat("entry ", entry.name, ": truncated, expected ", entry.packed,
                          " bytes at ", start, ", the file has ", bytes.size()));
  std::string_view data = bytes.substr(start, entry.packed);
  if (entry.method == 8) {
    TN_CHECK(inflate_into(file, entry, data, room));
    data = *room;
  }
  uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size());
  if (crc != entry.crc)
    return Status(TN_DATA_LOSS, cat(file.path(), ": entry ", entry.name, ": checksum differs"));
  return data;
}

}  // namespace tenon::datasets
