// SPDX-License-Identifier: Apache-2.0
#pragma once
// Libraries of the CUDA toolkit, opened when first used: a machine without them loads the plugin
// and learns what to install.

#include <string>

#include "tenon/sdk/status.hpp"

namespace tenon::cuda {

class Library {
 public:
  // A path, or a name: where the dynamic linker looks, then CUDA_PATH, CUDA_HOME and
  // /usr/local/cuda.
  static Result<Library> open(const std::string& soname, const std::string& package);
  template <class Function>
  Status get(const char* symbol, Function* out) const {
    void* found = find(symbol);
    if (!found) return {TN_UNAVAILABLE, cat("cuda: ", name_, " has no function ", symbol)};
    *out = reinterpret_cast<Function>(found);
    return {};
  }

 private:
  Library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* find(const char* symbol) const;
  void* handle_;  // never closed: such libraries keep threads and exit handlers
  std::string name_;
};

// A failure as a reason for the host, which puts the backend's name in front itself.
inline std::string reason_of(const Status& failed) {
  std::string why = failed.message();
  constexpr std::string_view kName = "cuda: ";
  return why.starts_with(kName) ? why.substr(kName.size()) : why;
}

}  // namespace tenon::cuda
