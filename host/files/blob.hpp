// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files in: mapped read-only, with range checks; files beside one are reached only inside its
// folder. The pages are the file's: a program that truncates a file while it is mapped takes them
// away, as with every mapping.

#include <span>
#include <string>
#include <string_view>

#include "tenon/host/blob.h"

#include "services/counted.hpp"
#include "services/ref.hpp"
#include "services/status.hpp"

struct tn_blob : tenon::host::Counted<tn_blob, tenon::host::Held::kBlob> {
  tn_blob(tn_ctx* owner, std::string path);
  ~tn_blob();
  // The address of a range of the file.
  tenon::host::Result<const void*> window(uint64_t offset, uint64_t bytes) const;
  // Gives the pages of a range back to the system, which reads them again when somebody does.
  void unneeded(uint64_t offset, uint64_t bytes) const;

  std::string path;
  const char* data = nullptr;
  uint64_t size = 0;
};

namespace tenon::host {

Result<Ref<tn_blob>> open_blob(tn_ctx* owner, std::string_view path);
Result<Ref<tn_blob>> open_sibling(const tn_blob& blob, std::string_view relative);

// Where a relative path leads, symbolic links resolved, or why it may not: absolute, with "..", or
// outside the folder of `base`. Only the last part of it may be missing.
Result<std::string> confine(std::string_view base, std::string_view relative);
// "cannot open model.onnx: no such file or directory", with a fitting code.
Status file_error(std::string_view doing, std::string_view path, int error);
Status check_path(std::string_view path);  // not empty, no NUL

const tn_host_blob* blob_service();

}  // namespace tenon::host
