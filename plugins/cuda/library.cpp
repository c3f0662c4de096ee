// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <cstdlib>
#include <vector>

#include <dlfcn.h>

namespace tenon::cuda {
namespace {

std::vector<std::string> places_of(const std::string& soname) {
  std::vector<std::string> places{soname};
  if (soname.find('/') != std::string::npos) return places;
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"}) {
    if (const char* folder = std::getenv(variable))
      places.push_back(cat(folder, "/lib64/", soname));
  }
  places.push_back("/usr/local/cuda/lib64/" + soname);
  return places;
}

}  // namespace

Result<Library> Library::open(const std::string& soname, const std::string& package) {
  std::string why;
  for (const std::string& place : places_of(soname)) {
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
