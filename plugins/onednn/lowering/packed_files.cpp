// SPDX-License-Identifier: Apache-2.0
#include "packed_files.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "tenon/sdk/cache_folder.hpp"

namespace tenon::onednn {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kHeadBytes = 4096;  // what follows begins a page
constexpr char kMagic[16] = "tenon packed 1";
constexpr std::string_view kEnding = ".packed", kUnfinished = ".unfinished-";
constexpr auto kAbandoned = std::chrono::hours(1);  // a file that is still unfinished then

struct Head {
  char magic[16] = {};
  PackedKey key = {};
  uint64_t bytes = 0;
  uint64_t sum = 0;   // of the bytes
  uint64_t self = 0;  // of the head so far

  uint64_t sum_of_head() const { return XXH3_64bits(this, offsetof(Head, self)); }
};
static_assert(sizeof(Head) <= kHeadBytes);

Head head_of(const PackedKey& key, const void* data, int64_t bytes) {
  Head head;
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.key = key;
  head.bytes = static_cast<uint64_t>(bytes);
  head.sum = XXH3_64bits(data, static_cast<size_t>(bytes));
  head.self = head.sum_of_head();
  return head;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

bool write_all(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

// The bytes behind the head; nullptr where the file is not of that size or cannot be mapped.
std::shared_ptr<const char> mapped(int fd, int64_t bytes) {
  struct stat status = {};
  const auto size = static_cast<size_t>(kHeadBytes + bytes);
  if (::fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(size)) return nullptr;
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (begin == MAP_FAILED) return nullptr;
  ::madvise(begin, size, MADV_HUGEPAGE);  // where the file system can
  return {static_cast<const char*>(begin),
          [size](const char* p) { ::munmap(const_cast<char*>(p), size); }};
}

struct Found {
  fs::path path;
  int64_t bytes;
  fs::file_time_type used;
};

// All files of the folder, without those that somebody began to write long ago: they are removed.
std::vector<Found> files_in(const std::string& folder) {
  std::vector<Found> all;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    const fs::file_time_type used = at->last_write_time(gone);
    const auto bytes = static_cast<int64_t>(gone ? 0 : at->file_size(gone));
    if (gone) continue;
    const std::string name = at->path().filename().string();
    if (name.find(kUnfinished) != std::string::npos) {
      if (fs::file_time_type::clock::now() - used > kAbandoned) fs::remove(at->path(), gone);
    } else if (name.ends_with(kEnding)) {
      all.push_back({at->path(), bytes, used});
    }
  }
  return all;
}

}  // namespace

PackedFiles::PackedFiles(std::string folder, std::string fingerprint, int64_t most_bytes, Note note)
    : folder_(std::move(folder)),
      fingerprint_(std::move(fingerprint)),
      most_bytes_(most_bytes),
      note_(std::move(note)) {}

std::string PackedFiles::default_folder() {
  const std::string own = user_cache_folder("onednn");
  return own.empty() ? own : own + "/packed";
}

PackedKey PackedFiles::key(const void* source, size_t source_bytes, std::string_view form) const {
  const XXH128_hash_t content = XXH3_128bits(source, source_bytes);
  const std::string all =
      cat(fingerprint_, "\n", source_bytes, " ", content.low64, " ", content.high64, "\n", form);
  const XXH128_hash_t whole = XXH3_128bits(all.data(), all.size());
  return {whole.high64, whole.low64};
}

std::string PackedFiles::path_of(const PackedKey& key) const {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(key[0]),
                static_cast<unsigned long long>(key[1]));
  return cat(folder_, "/", digits, kEnding);
}

void PackedFiles::note_once(const std::string& what) {
  std::lock_guard hold(mutex_);
  if (std::exchange(noted_[what], true) || !note_) return;
  note_(what);
}

std::shared_ptr<const void> PackedFiles::find(const PackedKey& key, int64_t bytes) {
  if (folder_.empty()) return nullptr;
  const std::string path = path_of(key);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return nullptr;
  const std::shared_ptr<const char> whole = mapped(file.fd(), bytes);
  Head head;
  if (whole != nullptr) std::memcpy(&head, whole.get(), sizeof head);
  const bool fits = whole != nullptr && std::memcmp(head.magic, kMagic, sizeof kMagic) == 0 &&
                    head.key == key && head.self == head.sum_of_head() &&
                    head.sum == XXH3_64bits(whole.get() + kHeadBytes, static_cast<size_t>(bytes));
  if (!fits) {
    note_once(cat("onednn: ", path, " is damaged: it is left out and written anew"));
    return nullptr;
  }
  ::futimens(file.fd(), nullptr);  // its last use
  return {whole, whole.get() + kHeadBytes};
}

bool PackedFiles::make_room(int64_t bytes) {
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) {
    note_once(cat("onednn: ", folder_, ": ", failed.message(), "; packed weights are not kept"));
    return false;
  }
  if (kHeadBytes + bytes > most_bytes_) {
    note_once(cat("onednn: packed weights of ", bytes, " bytes exceed the limit keep_packed_mb of ",
                  folder_));
    return false;
  }
  std::vector<Found> files = files_in(folder_);
  std::ranges::sort(files, {}, &Found::used);
  int64_t used = kHeadBytes + bytes;
  for (const Found& file : files)
    used += file.bytes;
  for (auto oldest = files.begin(); used > most_bytes_ && oldest != files.end(); ++oldest) {
    fs::remove(oldest->path, failed);
    used -= oldest->bytes;
  }
  return used <= most_bytes_;
}

// What went wrong, or nothing.
std::string PackedFiles::write(const PackedKey& key, const void* data, int64_t bytes) {
  const std::string path = path_of(key);
  std::string unfinished = cat(path, kUnfinished, "XXXXXX");
  const Descriptor file(::mkostemp(unfinished.data(), O_CLOEXEC));
  if (!file.is_open()) return std::strerror(errno);
  std::array<char, kHeadBytes> page{};
  const Head head = head_of(key, data, bytes);
  std::memcpy(page.data(), &head, sizeof head);
  const bool is_whole = write_all(file.fd(), page.data(), page.size()) &&
                        write_all(file.fd(), data, static_cast<size_t>(bytes)) &&
                        ::rename(unfinished.c_str(), path.c_str()) == 0;
  if (is_whole) return {};
  std::string why = std::strerror(errno);
  ::unlink(unfinished.c_str());
  return why;
}

std::shared_ptr<const void> PackedFiles::keep(const PackedKey& key,
                                              const void* data,
                                              int64_t bytes) {
  if (folder_.empty() || !make_room(bytes)) return nullptr;
  if (const std::string why = write(key, data, bytes); !why.empty()) {
    note_once(cat("onednn: ", folder_, ": ", why, "; packed weights are not kept"));
    return nullptr;
  }
  return find(key, bytes);
}

}  // namespace tenon::onednn
