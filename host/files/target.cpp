// SPDX-License-Identifier: Apache-2.0
#include "files/target.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/blob.hpp"
#include "services/session.hpp"

using namespace tenon::host;
namespace fs = std::filesystem;

namespace {

// A name of its own in the same folder, so that rename() stays on one file system. Of a long name
// it has the first part, so that a name is not too long only because of what is added to it.
std::string temporary_name(const fs::path& final_path) {
  static std::atomic<uint64_t> serial{0};
  constexpr size_t kMost = 128;
  const std::string head = final_path.filename().native().substr(0, kMost);
  return (final_path.parent_path() /
          cat(".", head, ".", ::getpid(), "-", serial.fetch_add(1), ".part"))
      .native();
}

// What is being written now, by all sessions: std::quick_exit, by which a program ends while its
// threads may be anywhere, leaves none of it behind. Exit handlers get no argument.
struct Unfinished {
  std::mutex lock;
  std::set<std::string> files;
  bool is_ending = false;
};
Unfinished& unfinished() {
  static Unfinished& all = *new Unfinished;  // NOLINT: never destroyed, threads may still write
  return all;
}
void remove_unfinished() {
  std::lock_guard hold(unfinished().lock);
  unfinished().is_ending = true;
  for (const std::string& file : unfinished().files)
    ::unlink(file.c_str());
}

int open_temporary(const std::string& file) {
  [[maybe_unused]] static const int registered = std::at_quick_exit(remove_unfinished);
  std::lock_guard hold(unfinished().lock);
  if (unfinished().is_ending) {
    errno = ECANCELED;
    return -1;
  }
  unfinished().files.insert(file);
  int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd >= 0) return fd;
  int why = errno;
  unfinished().files.erase(file);
  errno = why;
  return -1;
}
void forget_temporary(const std::string& file) {
  std::lock_guard hold(unfinished().lock);
  unfinished().files.erase(file);
}

Status flush_folder(const fs::path& file) {
  std::string folder = file.parent_path().native();
  int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return file_error("flush", folder, errno);
  int failure = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some file systems cannot flush a folder; the files themselves are safe by then.
  return failure == 0 || failure == EINVAL ? Status() : file_error("flush", folder, failure);
}

// Where symbolic links lead, to a file that may not exist yet.
Result<fs::path> end_of_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as Linux has it
  std::error_code error;
  for (int i = 0; fs::is_symlink(fs::symlink_status(path, error)); ++i) {
    if (i == kMostLinks) return file_error("write", path.native(), ELOOP);
    fs::path next = fs::read_symlink(path, error);
    if (error) return file_error("write", path.native(), error.value());
    path = path.parent_path() / next;
  }
  const fs::path folder = fs::canonical(path.parent_path(), error);
  return error ? path : folder / path.filename();
}

}  // namespace

tn_target::tn_target(tn_ctx* made_by, std::string where) : owner(made_by), path(std::move(where)) {
  owner->add(Held::kBlob, 1);
}

tn_target::~tn_target() {
  for (const File& file : files) {
    if (file.fd >= 0) ::close(file.fd);
    if (file.temporary.empty()) continue;
    ::unlink(file.temporary.c_str());
    forget_temporary(file.temporary);
  }
  owner->add(Held::kBlob, -1);
}

Status tn_target::add(std::string_view name, std::string final_path) {
  for (const File& file : files)
    if (file.final_path == final_path)
      return invalid(cat("cannot write ", name, ": it is the same file as ",
                         file.name.empty() ? path : file.name));
  struct stat old{};
  bool exists = ::stat(final_path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode))
    return invalid(cat("cannot write ", final_path, ": expected a file, got ",
                       S_ISDIR(old.st_mode) ? "a folder" : "a device or pipe"));
  File file{std::string(name), std::move(final_path), {}, -1};
  file.temporary = temporary_name(file.final_path);
  files.reserve(files.size() + 1);  // from here on nothing may throw: the file must not be lost
  file.fd = open_temporary(file.temporary);
  if (file.fd < 0) return file_error("write", file.final_path, errno);
  if (exists) (void)::fchmod(file.fd, old.st_mode & 0777);  // who could read it still can
  files.push_back(std::move(file));
  return {};
}

Result<tn_target::File*> tn_target::file_for(std::string_view sibling) {
  for (File& file : files)
    if (file.name == sibling) return &file;
  TN_TRY(final_path, confine(files.front().final_path, sibling));
  TN_CHECK(add(sibling, final_path));
  return &files.back();
}

Status tn_target::write(std::string_view sibling, const void* data, uint64_t bytes) {
  if (failed)
    return Status(TN_FAILED_PRECONDITION, cat("cannot write ", path, ": a write failed before"));
  failed = true;
  TN_TRY(file, file_for(sibling));
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    // write() moves at most 2 GiB at once.
    ssize_t written = ::write(file->fd, from, std::min<uint64_t>(bytes, 1u << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("write", file->final_path, errno);
    from += written;
    bytes -= static_cast<uint64_t>(written);
  }
  failed = false;
  return {};
}

Status tn_target::commit() {
  if (failed)
    return Status(TN_FAILED_PRECONDITION, cat("cannot write ", path, ": a write failed before"));
  for (File& file : files) {
    if (::fsync(file.fd) != 0) return file_error("write", file.final_path, errno);
    if (::close(std::exchange(file.fd, -1)) != 0)
      return file_error("write", file.final_path, errno);
  }
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    if (::rename(file->temporary.c_str(), file->final_path.c_str()) != 0)
      return file_error("write", file->final_path, errno);
    forget_temporary(file->temporary);
    file->temporary.clear();
  }
  return flush_folder(files.front().final_path);
}

namespace tenon::host {

Result<std::unique_ptr<tn_target>> create_target(tn_ctx* owner, std::string_view path) {
  TN_CHECK(check_path(path));
  auto target = std::make_unique<tn_target>(owner, std::string(path));
  // Where the path is a symbolic link, the file that it leads to is replaced, not the link.
  std::error_code error;
  TN_TRY(final_path, end_of_links(fs::absolute(fs::path(path), error)));
  TN_CHECK(target->add({}, final_path.native()));
  return target;
}

}  // namespace tenon::host
