// SPDX-License-Identifier: Apache-2.0
#pragma once
// Packed weights on disk: a file for each constant in each form, which all processes of a user map,
// so that a later process packs nothing and shares the memory of those that run. A file is written
// under another name and renamed when it is whole; one that is damaged, of another CPU or of
// another build is left out and written anew. Files that were not used for the longest time go when
// all together exceed a limit. Thread-safe.
//
//   PackedFiles files(folder, fingerprint(), most_bytes, note);
//   const PackedKey key = files.key(source, source_bytes, form);
//   std::shared_ptr<const void> data = files.find(key, bytes);
//   if (data == nullptr) data = files.keep(key, packed, bytes);  // nullptr: it cannot be kept

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace tenon::onednn {

// A digest of the constant, of its form, and of the machine and build.
using PackedKey = std::array<uint64_t, 2>;

class PackedFiles {
 public:
  using Note = std::function<void(const std::string&)>;
  static constexpr int64_t kLeastBytes = int64_t{64} << 10;  // smaller ones are not worth a file

  // note: notified, once each, of what is damaged and of why nothing can be kept.
  PackedFiles(std::string folder, std::string fingerprint, int64_t most_bytes, Note note);

  // The folder "packed" in the one of this plugin in the user's cache, or empty.
  static std::string default_folder();

  // form: all that the packed bytes depend on beside the source.
  PackedKey key(const void* source, size_t source_bytes, std::string_view form) const;
  // Read-only and page-aligned; nullptr where no whole file has it.
  std::shared_ptr<const void> find(const PackedKey& key, int64_t bytes);
  std::shared_ptr<const void> keep(const PackedKey& key, const void* data, int64_t bytes);

 private:
  std::string path_of(const PackedKey& key) const;
  // Whether a file of so many bytes may be added.
  bool make_room(int64_t bytes);
  std::string write(const PackedKey& key, const void* data, int64_t bytes);
  void note_once(const std::string& what);

  std::string folder_, fingerprint_;
  int64_t most_bytes_;
  Note note_;
  std::mutex mutex_;  // guards all below
  std::map<std::string, bool> noted_;
};

}  // namespace tenon::onednn
