// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's .npz: a zip file with one .npy for each array, stored or deflated (APPNOTE.TXT of PKWARE,
// sections 4.3 to 4.5; the 64-bit fields that NumPy writes for big arrays are read).

#include <zlib.h>

#include "tenon/cxx/npy.hpp"

namespace tenon::cxx::npz {

struct Array {
  std::string name;
  Tensor tensor;
};

using npy::Bytes;

class Archive {
 public:
  Archive(Bytes file, const std::string& where) : file_(file), where_(where) { find_directory(); }

  std::vector<Array> read(const SessionPtr& session) {
    std::vector<Array> arrays;
    uint64_t at = directory_;
    for (uint64_t i = 0; i < entries_; ++i) {
      if (number(at, 4) != 0x02014b50) broken("expected an entry of the zip directory");
      Entry entry = entry_at(at);
      if (entry.name.ends_with(".npy")) {
        std::string place = cat(where_, ": ", entry.name);
        std::vector<unsigned char> data = content(entry);
        arrays.push_back(
            {entry.name.substr(0, entry.name.size() - 4), npy::parse(session, data, place)});
      }
      at += 46 + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
    }
    return arrays;
  }

 private:
  struct Entry {
    std::string name;
    uint64_t method, packed, size, header, crc;
  };

  [[noreturn]] void broken(const std::string& what) const {
    throw Error(TN_DATA_LOSS, cat(where_, ": ", what));
  }
  uint64_t number(uint64_t at, unsigned bytes) const {
    if (at > file_.size() || bytes > file_.size() - at) broken("truncated zip file");
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i)
      value |= uint64_t{file_[at + i]} << (8 * i);
    return value;
  }
  Bytes part(uint64_t at, uint64_t bytes) const {
    if (at > file_.size() || bytes > file_.size() - at) broken("truncated zip file");
    return file_.subspan(at, bytes);
  }

  // The end record lies in the last 64 KiB, behind it at most a comment.
  void find_directory() {
    if (file_.size() < 22) broken("expected an npz file, got too few bytes for one");
    uint64_t last = file_.size() - 22;
    uint64_t first = last > 0xffff ? last - 0xffff : 0;
    for (uint64_t at = last + 1; at-- > first;) {
      if (number(at, 4) != 0x06054b50) continue;
      entries_ = number(at + 10, 2);
      directory_ = number(at + 16, 4);
      if (directory_ == 0xffffffff || entries_ == 0xffff) read_end64(at);
      return;
    }
    broken("expected an npz file, got something else or a truncated one (no zip directory)");
  }
  void read_end64(uint64_t end) {
    if (end < 20 || number(end - 20, 4) != 0x07064b50) return;
    uint64_t at = number(end - 12, 8);
    if (number(at, 4) != 0x06064b50) broken("expected the 64-bit end of the zip directory");
    entries_ = number(at + 32, 8);
    directory_ = number(at + 48, 8);
  }
  Entry entry_at(uint64_t at) const {
    Bytes name = part(at + 46, number(at + 28, 2));
    Entry entry{std::string(name.begin(), name.end()),
                number(at + 10, 2),
                number(at + 20, 4),
                number(at + 24, 4),
                number(at + 42, 4),
                number(at + 16, 4)};
    if (number(at + 8, 2) & 1) broken(cat(entry.name, ": encrypted, which is not read"));
    uint64_t extra = at + 46 + name.size();
    const uint64_t extra_end = extra + number(at + 30, 2);
    while (extra + 4 <= extra_end) {
      uint64_t field = extra + 4;
      if (number(extra, 2) == 1) {  // 64-bit sizes, only those that did not fit, in this order
        for (uint64_t* wide : {&entry.size, &entry.packed, &entry.header}) {
          if (*wide != 0xffffffff) continue;
          *wide = number(field, 8);
          field += 8;
        }
      }
      extra += 4 + number(extra + 2, 2);
    }
    return entry;
  }
  std::vector<unsigned char> content(const Entry& entry) const {
    if (number(entry.header, 4) != 0x04034b50) broken(cat(entry.name, ": expected a zip entry"));
    uint64_t begin =
        entry.header + 30 + number(entry.header + 26, 2) + number(entry.header + 28, 2);
    Bytes packed = part(begin, entry.packed);
    std::vector<unsigned char> data;
    if (entry.method == 0) {
      data.assign(packed.begin(), packed.end());
    } else if (entry.method == 8) {
      data = inflate_all(entry, packed);
    } else {
      broken(cat(entry.name, ": expected a stored or deflated entry, got method ", entry.method));
    }
    if (data.size() != entry.size || checksum(data) != entry.crc) {
      broken(cat(entry.name, ": damaged: size or checksum differ from the directory's"));
    }
    return data;
  }
  static uint64_t checksum(Bytes data) { return crc32_z(0, data.data(), data.size()); }
  // Deflate packs at most 1032 to 1, so a size claimed beyond that is a lie.
  std::vector<unsigned char> inflate_all(const Entry& entry, Bytes packed) const {
    if (entry.size / 1032 > packed.size()) broken(cat(entry.name, ": size cannot be true"));
    std::vector<unsigned char> data(entry.size);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    size_t in = 0;
    size_t out = 0;
    int state = Z_OK;
    while (state == Z_OK) {
      constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
      stream.next_in = const_cast<unsigned char*>(packed.data() + in);
      stream.avail_in = static_cast<uInt>(std::min(kMost, packed.size() - in));
      stream.next_out = data.data() + out;
      stream.avail_out = static_cast<uInt>(std::min(kMost, data.size() - out));
      const uInt gave_in = stream.avail_in;
      const uInt gave_out = stream.avail_out;
      state = inflate(&stream, Z_NO_FLUSH);
      in += gave_in - stream.avail_in;
      out += gave_out - stream.avail_out;
    }
    inflateEnd(&stream);
    if (state != Z_STREAM_END) broken(cat(entry.name, ": damaged deflate data"));
    data.resize(out);
    return data;
  }

  Bytes file_;
  const std::string& where_;
  uint64_t entries_ = 0;
  uint64_t directory_ = 0;
};

inline std::vector<Array> read(const SessionPtr& session, const std::string& path) {
  MappedFile file(session, path);
  return Archive(file.bytes(), path).read(session);
}

// Stored, without 64-bit fields: arrays up to 4 GiB in all.
inline std::string encode(const std::vector<Array>& arrays) {
  std::string out;
  std::string directory;
  auto put = [](std::string& to, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i)
      to += static_cast<char>(value >> (8 * i) & 0xff);
  };
  for (const Array& array : arrays) {
    std::string name = array.name + ".npy";
    std::string data = npy::encode(array.tensor);
    std::string fields;  // the same in both headers; 0x21: the first day of 1980
    for (auto [value, bytes] :
         {std::pair<uint64_t, unsigned>{20, 2}, {0, 2}, {0, 2}, {0, 2}, {0x21, 2}})
      put(fields, value, bytes);
    put(fields, crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()), 4);
    put(fields, data.size(), 4);
    put(fields, data.size(), 4);
    put(fields, name.size(), 2);
    put(fields, 0, 2);
    if (out.size() + data.size() > 0xfffffff0u) invalid("npz: expected at most 4 GiB in all");
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    directory += fields;
    directory.append(10, '\0');  // no comment, first disk, no attributes
    put(directory, out.size(), 4);
    directory += name;
    put(out, 0x04034b50, 4);
    out += fields + name + data;
  }
  const uint64_t begin = out.size();
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, arrays.size(), 2);
  put(out, arrays.size(), 2);
  put(out, directory.size(), 4);
  put(out, begin, 4);
  put(out, 0, 2);
  return out;
}

inline void write(const SessionPtr& session,
                  const std::vector<Array>& arrays,
                  const std::string& path) {
  write_file(session, path, encode(arrays));
}

}  // namespace tenon::cxx::npz
