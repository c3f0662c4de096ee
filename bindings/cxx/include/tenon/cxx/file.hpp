// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files through the host: read mapped, written beside the target and renamed when whole.

#include <span>
#include <string>

#include "tenon/cxx/session.hpp"

namespace tenon::cxx {

class MappedFile {
 public:
  MappedFile(const SessionPtr& session, const std::string& path) {
    tn_blob* raw = nullptr;
    check(session->blob->open(session->ctx(), str(path), &raw));
    blob_ = Handle<tn_blob>(session, raw, session->blob->release);
    const void* data = nullptr;
    uint64_t size = session->blob->size(raw);
    if (size) check(session->blob->map(raw, 0, size, &data));
    bytes_ = {static_cast<const unsigned char*>(data), size};
  }
  std::span<const unsigned char> bytes() const { return bytes_; }

 private:
  Handle<tn_blob> blob_;
  std::span<const unsigned char> bytes_;
};

// Output files that all appear at commit(), or none of them.
class TargetFile {
 public:
  TargetFile(const SessionPtr& session, const std::string& path) : session_(session) {
    check(session->blob->create(session->ctx(), str(path), &raw_));
  }
  ~TargetFile() {
    if (raw_) session_->blob->abandon(raw_);
  }
  TargetFile(const TargetFile&) = delete;
  TargetFile& operator=(const TargetFile&) = delete;
  // sibling empty: to the file itself, else to a file beside it.
  void write(std::string_view sibling, const void* data, uint64_t bytes) {
    check(session_->blob->write(raw_, str(sibling), data, bytes));
  }
  void commit() { check(session_->blob->commit(std::exchange(raw_, nullptr))); }

 private:
  SessionPtr session_;
  tn_target* raw_ = nullptr;
};

inline void write_file(const SessionPtr& session,
                       const std::string& path,
                       std::string_view content) {
  TargetFile target(session, path);
  target.write({}, content.data(), content.size());
  target.commit();
}

}  // namespace tenon::cxx
