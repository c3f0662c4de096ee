// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <cstdlib>

#include <dlfcn.h>

namespace tenon::cuda {

Result<Library> Library::open(const std::string& soname, const std::string& package) {
  std::string places[4] = {soname, "", "", "/usr/local/cuda/lib64/" + soname};
  const char* const variables[] = {"CUDA_PATH", "CUDA_HOME"};
  for (size_t i = 0; i < 2; ++i) {
    if (const char* folder = std::getenv(variables[i])) {
      places[i + 1] = std::string(folder) + "/lib64/" + soname;
    }
  }
  std::string why;
  for (const std::string& place : places) {
    if (place.empty()) continue;
    if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle, soname);
    const char* said = dlerror();
    if (why.empty() && said) why = said;
  }
  return Status(TN_UNAVAILABLE, cat("cuda: ", soname, " was not found; install ", package,
                                    " or set CUDA_PATH (", why, ")"));
}

void* Library::find(const char* symbol) const {
  return dlsym(handle_, symbol);
}

}  // namespace tenon::cuda
