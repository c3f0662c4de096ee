// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file that grows while a run goes on, so that others read along. What a record has is written at
// once: after a kill at most the last record is cut off.

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "tenon/sdk/status.hpp"

namespace tenon::trainer {

class Appended {
 public:
  Appended() = default;
  explicit Appended(std::string path) : path_(std::move(path)) {}
  Appended(Appended&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
  Appended& operator=(Appended&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    return *this;
  }
  ~Appended() {
    if (file_ >= 0) ::close(file_);
  }

  // The file, and its folder, are made with the first record.
  Status write(std::string_view record) {
    if (file_ < 0) TN_CHECK(open());
    while (!record.empty()) {
      ssize_t written = ::write(file_, record.data(), record.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return {TN_DATA_LOSS, cat(path_, ": ", std::strerror(errno))};
      record.remove_prefix(static_cast<size_t>(written));
    }
    return {};
  }

 private:
  Status open() {
    std::error_code ignored;  // the file itself says what is wrong
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ >= 0) return {};
    return invalid(cat("option path: ", path_,
                       ": expected a file that can be written, got: ", std::strerror(errno)));
  }

  std::string path_;
  int file_ = -1;
};

}  // namespace tenon::trainer
