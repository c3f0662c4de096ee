// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files out: each is written beside its target, flushed and renamed at commit. Until then, and
// after a failure, what was there before is untouched and nothing new is left.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base.h"

#include "services/handle.hpp"
#include "services/status.hpp"

struct tn_target : tenon::host::Handle<tn_target> {
  tn_target(tn_ctx* owner, std::string path);
  tn_target(const tn_target&) = delete;
  tn_target& operator=(const tn_target&) = delete;
  ~tn_target();  // abandons what was not committed

  // Appends to the file itself (sibling empty) or to one beside it.
  tenon::host::Status write(std::string_view sibling, const void* data, uint64_t bytes);
  // Once; all files or none, as far as the file system can: the file itself comes last, so it never
  // names siblings that are missing.
  tenon::host::Status commit();
  tenon::host::Status add(std::string_view name, std::string final_path);  // once per file

  struct File {
    std::string name;  // as the writer calls it; empty for the file itself
    std::string final_path;
    std::string temporary;
    int fd = -1;
  };

  tn_ctx* owner;
  std::string path;
  std::vector<File> files;
  bool failed = false;

 private:
  tenon::host::Result<File*> file_for(std::string_view sibling);
};

namespace tenon::host {

// Opens the file itself at once, so that a folder that cannot be written fails before the work.
Result<std::unique_ptr<tn_target>> create_target(tn_ctx* owner, std::string_view path);

}  // namespace tenon::host
