// SPDX-License-Identifier: Apache-2.0
#include "files/blob.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/target.hpp"
#include "services/boundary.hpp"
#include "services/session.hpp"

using namespace tenon::host;
namespace fs = std::filesystem;

tn_blob::tn_blob(tn_ctx* opened_by, std::string where)
    : Counted(opened_by), path(std::move(where)) {}

tn_blob::~tn_blob() {
  if (data) ::munmap(const_cast<char*>(data), size);
}

Result<const void*> tn_blob::window(uint64_t offset, uint64_t bytes) const {
  if (offset > size || bytes > size - offset)
    return Status(TN_OUT_OF_RANGE, cat(path, ": expected ", bytes, " bytes at offset ", offset,
                                       ", got a file of ", size, " bytes"));
  static const char nothing = 0;  // an empty range has an address too
  return static_cast<const void*>(data ? data + offset : &nothing);
}

void tn_blob::unneeded(uint64_t offset, uint64_t bytes) const {
  if (!data || offset > size || bytes > size - offset || bytes == 0) return;
  // A private mapping that nobody can write to has no pages but the file's.
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t begin = offset / page * page;
  ::madvise(const_cast<char*>(data) + begin, offset + bytes - begin, MADV_DONTNEED);
}

namespace tenon::host {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Status file_error(std::string_view doing, std::string_view path, int error) {
  int32_t code = TN_UNAVAILABLE;
  if (error == ENOENT || error == ENOTDIR) code = TN_NOT_FOUND;
  if (error == EACCES || error == EPERM || error == EROFS) code = TN_PERMISSION_DENIED;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM)
    code = TN_RESOURCE_EXHAUSTED;
  std::string why = std::generic_category().message(error);
  if (!why.empty() && why[0] >= 'A' && why[0] <= 'Z') why[0] = static_cast<char>(why[0] + 32);
  return {code, cat("cannot ", doing, " ", path, ": ", why)};
}

Status check_path(std::string_view path) {
  if (path.empty()) return invalid("file: expected a path, got ''");
  if (path.find('\0') != std::string_view::npos)
    return invalid(cat("file: expected a path without NUL, got '", path.substr(0, path.find('\0')),
                       "\\0...'"));
  return {};
}

Result<Ref<tn_blob>> open_blob(tn_ctx* owner, std::string_view path) {
  TN_CHECK(check_path(path));
  auto blob = Ref<tn_blob>::take(new tn_blob(owner, std::string(path)));
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  Descriptor file{::open(blob->path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return file_error("open", path, errno);
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) return file_error("read", path, errno);
  if (!S_ISREG(info.st_mode))
    return invalid(cat("cannot open ", path, ": expected a file, got ",
                       S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe"));
  if (info.st_size == 0) return blob;
  auto size = static_cast<size_t>(info.st_size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (mapped == MAP_FAILED) return file_error("map", path, errno);
  blob->data = static_cast<const char*>(mapped);
  blob->size = size;
  return blob;
}

Result<std::string> confine(std::string_view base, std::string_view relative) {
  TN_CHECK(check_path(relative));
  fs::path wanted(relative);
  auto refuse = [&](std::string_view why) {
    return Status(TN_PERMISSION_DENIED, cat("cannot use ", relative, " beside ", base, ": ", why));
  };
  if (wanted.is_absolute()) return refuse("expected a relative path, got an absolute one");
  for (const fs::path& part : wanted)
    if (part == "..") return refuse("a path with '..' may leave the folder");
  std::error_code error;
  fs::path folder = fs::canonical(fs::absolute(fs::path(base), error).parent_path(), error);
  if (error) return file_error("open", base, error.value());
  fs::path parent = fs::canonical((folder / wanted).parent_path(), error);
  if (error) return file_error("open", relative, error.value());
  fs::path leads_to = parent / wanted.filename();
  // A link to nowhere is not missing: writing to it would make what it leads to.
  bool missing = fs::symlink_status(leads_to, error).type() == fs::file_type::not_found;
  error.clear();
  if (!missing) leads_to = fs::canonical(leads_to, error);
  if (error) return file_error("open", relative, error.value());
  auto [end, rest] = std::mismatch(folder.begin(), folder.end(), leads_to.begin(), leads_to.end());
  if (end != folder.end() || rest == leads_to.end())
    return refuse(cat("it leads out of the folder, to ", leads_to.native()));
  return leads_to.native();
}

Result<Ref<tn_blob>> open_sibling(const tn_blob& blob, std::string_view relative) {
  TN_TRY(path, confine(blob.path, relative));
  return open_blob(blob.owner, path);
}

namespace {

tn_status* open(tn_ctx* ctx, tn_str path, tn_blob** out) {
  return guarded_out(out, [&] { return open_blob(ctx, view(path)); });
}
uint64_t size(const tn_blob* blob) {
  return blob ? blob->size : 0;
}
tn_str path(const tn_blob* blob) {
  return blob ? str(blob->path) : tn_str{};
}

tn_status* map(tn_blob* blob, uint64_t offset, uint64_t bytes, const void** out) {
  return guarded_out(out, [&] { return blob->window(offset, bytes); });
}

void unneeded(tn_blob* blob, uint64_t offset, uint64_t bytes) {
  if (blob) blob->unneeded(offset, bytes);
}

tn_status* sibling(tn_blob* blob, tn_str relative, tn_blob** out) {
  return guarded_out(out, [&] { return open_sibling(*blob, view(relative)); });
}

tn_status* create(tn_ctx* ctx, tn_str path, tn_target** out) {
  return guarded_out(out, [&] { return create_target(ctx, view(path)); });
}
tn_str target_path(const tn_target* target) {
  return target ? str(target->path) : tn_str{};
}

tn_status* write(tn_target* target, tn_str sibling, const void* data, uint64_t bytes) {
  return guarded([&]() -> Status {
    if (!target || (bytes && !data)) return invalid("write: expected a target and data, got NULL");
    return target->write(view(sibling), data, bytes);
  });
}

tn_status* commit(tn_target* target) {
  std::unique_ptr<tn_target> ended(target);
  return guarded([&]() -> Status {
    if (!ended) return invalid("commit: expected a target, got NULL");
    return ended->commit();
  });
}
void abandon(tn_target* target) {
  std::unique_ptr<tn_target> ended(target);
}

}  // namespace

const tn_host_blob* blob_service() {
  static const tn_host_blob table{sizeof table, 1,       open,          size,           path,
                                  map,          sibling, retain_object, release_object, create,
                                  target_path,  write,   commit,        abandon,        unneeded};
  return &table;
}

}  // namespace tenon::host
