// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiled kernels on disk, one file each. A file that is not what was written (cut short, other
// bytes, another text under the same name) is compiled again and replaced.

#include <functional>
#include <string>

#include "tenon/sdk/status.hpp"

namespace tenon::cuda {

class KernelCache {
 public:
  using Compile = std::function<Result<std::string>()>;
  using Note = std::function<void(const std::string&)>;
  // folder: empty: nothing is kept. note: notified of what is rebuilt or cannot be written.
  KernelCache(std::string folder, Note note) : folder_(std::move(folder)), note_(std::move(note)) {}
  // The user's cache folder by the XDG rules, or empty.
  static std::string default_folder();

  // `key` is all that the code depends on: text, architecture, compiler.
  Result<std::string> get(const std::string& symbol,
                          const std::string& key,
                          const Compile& compile) const;

 private:
  std::string folder_;
  Note note_;
};

}  // namespace tenon::cuda
