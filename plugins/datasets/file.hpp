// SPDX-License-Identifier: Apache-2.0
#pragma once
// A mapped file, and checked reading of little-endian numbers in it.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tenon/sdk/status.hpp"

namespace tenon::datasets {

class File {
 public:
  static Result<File> open(tn_ctx* ctx, const std::string& path);
  static Result<File> of(tn_blob* blob);  // another reference
  File(File&& other) noexcept
      : blob_(std::exchange(other.blob_, nullptr)), bytes_(other.bytes_), path_(other.path_) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (blob_) services.blob->release(blob_);
  }
  std::string_view bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  Status fault(std::string_view why) const { return invalid(cat(path_, ": ", why)); }

 private:
  File(tn_blob* blob, std::string path) : blob_(blob), path_(std::move(path)) {}
  tn_blob* blob_;
  std::string_view bytes_;
  std::string path_;
};

// The number at `at`, which the caller has checked to be inside.
template <class T>
T little(std::string_view bytes, uint64_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

// Whether bytes[at, at + n) is inside, without overflow.
inline bool holds(std::string_view bytes, uint64_t at, uint64_t n) {
  return at <= bytes.size() && n <= bytes.size() - at;
}

// "digits" of "data/digits.npy".
std::string stem_of(const std::string& path);

}  // namespace tenon::datasets
