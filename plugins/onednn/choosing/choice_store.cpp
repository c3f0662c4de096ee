// SPDX-License-Identifier: Apache-2.0
#include "choice_store.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenon/sdk/backend/weights.hpp"
#include "tenon/sdk/cache_folder.hpp"

namespace tenon::onednn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "tenon onednn choices 1; ";
constexpr size_t kSumDigits = 16;

std::string digits(uint64_t number) {
  char text[kSumDigits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// KEY#IMPLEMENTATION{#NANOSECONDS IMPLEMENTATION}
std::optional<std::pair<std::string, Decision>> parsed(std::string_view line) {
  const std::vector<std::string_view> parts = parts_of(line, ChoiceStore::kSeparator);
  if (parts.size() < 2 || parts[0].empty() || parts[1].empty()) return std::nullopt;
  Decision decision{std::string(parts[1])};
  for (size_t i = 2; i < parts.size(); ++i) {
    Timed timed;
    const auto [end, failed] =
        std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), timed.ns);
    const auto n_digits = static_cast<size_t>(end - parts[i].data());
    if (failed != std::errc() || n_digits + 1 >= parts[i].size()) return std::nullopt;
    timed.implementation = parts[i].substr(n_digits + 1);
    decision.measured.push_back(std::move(timed));
  }
  return std::pair{std::string(parts[0]), std::move(decision)};
}

}  // namespace

// Open, and nobody else changes it while it is.
class ChoiceStore::File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0)
      error_ = errno;
    else
      lock((flags & O_RDWR) != 0 ? LOCK_EX : LOCK_SH);
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int error() const { return error_; }

  std::string content() {
    std::string text;
    char block[1 << 16];
    ssize_t n = 0;
    while (text.size() <= kMostBytes &&
           (n = ::pread(fd_, block, sizeof block, static_cast<off_t>(text.size()))) > 0)
      text.append(block, static_cast<size_t>(n));
    return text;
  }

  void replace(const std::string& content) {
    if (::ftruncate(fd_, 0) != 0) error_ = errno;
    write(content, 0);
  }

  void append(const std::string& text, uint64_t at) { write(text, at); }

 private:
  // Others hold it for a moment. A process that is stopped then must not stop this one.
  void lock(int how) {
    constexpr int kTries = 100;
    for (int i = 0; ::flock(fd_, how | LOCK_NB) != 0; ++i) {
      error_ = errno;
      if ((error_ != EWOULDBLOCK && error_ != EINTR) || i == kTries) return;
      ::usleep(1000);
    }
    error_ = 0;
  }

  void write(const std::string& text, uint64_t at) {
    const ssize_t n = ::pwrite(fd_, text.data(), text.size(), static_cast<off_t>(at));
    if (n != static_cast<ssize_t>(text.size())) error_ = n < 0 ? errno : ENOSPC;
  }

  int fd_;
  int error_ = 0;
};

ChoiceStore::ChoiceStore(std::string folder, std::string fingerprint, Note note)
    : folder_(std::move(folder)), fingerprint_(std::move(fingerprint)), note_(std::move(note)) {
  const uint64_t id = backend::content_hash(fingerprint_.data(), fingerprint_.size());
  if (!folder_.empty()) path_ = cat(folder_, "/choices-", digits(id), ".txt");
}

std::string ChoiceStore::default_folder() {
  return user_cache_folder("onednn");
}

void ChoiceStore::note_once(const std::string& what) {
  if (std::exchange(noted_[what], true) || !note_) return;
  note_(what);
}

std::string ChoiceStore::line_of(const std::string& key, const Decision& decision) {
  const std::string separator(1, kSeparator);
  std::string line = cat(key, separator, decision.implementation);
  for (const Timed& timed : decision.measured)
    line += cat(separator, timed.ns, " ", timed.implementation);
  return line;
}

std::string ChoiceStore::sealed(const std::string& line) const {
  const std::string all = fingerprint_ + "\n" + line;
  return digits(backend::content_hash(all.data(), all.size())) + " " + line + "\n";
}

std::string ChoiceStore::take(const std::vector<std::string>& lines) {
  std::lock_guard hold(mutex_);
  for (const std::string& line : lines) {
    auto found = parsed(line);
    if (!found) return line;
    taken_.insert(std::move(*found));
  }
  return {};
}

// Behind the head. The first line of a key counts.
void ChoiceStore::read(std::string_view content) {
  size_t n_damaged = 0;
  for (std::string_view line : parts_of(content, '\n')) {
    if (line.empty()) continue;
    const std::string text(line.substr(std::min(line.size(), kSumDigits + 1)));
    auto found = sealed(text) == cat(line, "\n") ? parsed(text) : std::nullopt;
    if (found)
      kept_.insert(std::move(*found));
    else
      ++n_damaged;
  }
  if (n_damaged > 0)
    note_once(cat("onednn: ", path_, ": damaged lines: ", n_damaged,
                  "; they are left out, and what they say may be measured again"));
}

void ChoiceStore::read_once() {
  if (std::exchange(is_read_, true) || path_.empty()) return;
  File file(path_, O_RDONLY);
  if (file.error() == ENOENT) return;  // nothing has been kept
  if (file.error() != 0)
    return note_once(cat("onednn: ", path_, " cannot be read: ", std::strerror(file.error())));
  const std::string content = file.content(), head = cat(kHead, fingerprint_, "\n");
  if (content.starts_with(head)) return read(std::string_view(content).substr(head.size()));
  if (!content.empty())
    note_once(cat("onednn: ", path_, " is damaged or of another machine: it is left out"));
}

std::optional<Decision> ChoiceStore::find(const std::string& key) {
  std::lock_guard hold(mutex_);
  if (auto found = taken_.find(key); found != taken_.end()) return found->second;
  read_once();
  auto found = kept_.find(key);
  return found == kept_.end() ? std::nullopt : std::optional(found->second);
}

bool ChoiceStore::can_keep() {
  std::lock_guard hold(mutex_);
  if (path_.empty()) return false;
  if (!why_not_kept_.empty()) return false;
  std::error_code failed;
  fs::create_directories(folder_, failed);
  File file(path_, O_RDWR | O_CREAT);
  if (file.error() == 0 && file.content().size() < kMostBytes) return true;
  why_not_kept_ =
      file.error() != 0 ? std::strerror(file.error()) : "it is full; remove it to measure again";
  note_once(cat("onednn: ", path_, ": ", why_not_kept_, ", so that the rules choose"));
  return false;
}

std::optional<Decision> ChoiceStore::keep(const std::string& key, const Decision& decision) {
  if (!can_keep()) return std::nullopt;
  std::lock_guard hold(mutex_);
  File file(path_, O_RDWR | O_CREAT);
  std::string content = file.content();
  const std::string head = cat(kHead, fingerprint_, "\n");
  if (!content.starts_with(head)) {
    file.replace(head);
    content = head;
  }
  read(std::string_view(content).substr(head.size()));  // others may have appended
  if (auto found = kept_.find(key); found != kept_.end()) return found->second;
  // A line that was cut short ends here.
  const std::string line = cat(content.back() == '\n' ? "" : "\n", sealed(line_of(key, decision)));
  file.append(line, content.size());
  if (file.error() != 0) return std::nullopt;
  kept_[key] = decision;
  return decision;
}

}  // namespace tenon::onednn
