// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading zip archives (PKWARE APPNOTE 6.3.10): stored and deflated entries, zip64, no encryption,
// no spanning. Every offset and size is checked against the file; checksums are verified.

#include <cstdint>
#include <string>
#include <vector>

#include "file.hpp"

namespace tenon::datasets {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;  // 0 stored, 8 deflated
  uint32_t crc = 0;
  uint64_t packed = 0;  // bytes in the file
  uint64_t size = 0;    // bytes unpacked
  uint64_t header = 0;  // offset of the local header
};

bool looks_like_zip(std::string_view bytes);
Result<std::vector<ZipEntry>> zip_entries(const File& file);

// The entry's bytes: a window of the file when stored, else unpacked into *room.
Result<std::string_view> zip_read(const File& file, const ZipEntry& entry, std::string* room);

}  // namespace tenon::datasets
