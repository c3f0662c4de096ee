// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include <bit>
#include <filesystem>

namespace tenon::datasets {

static_assert(std::endian::native == std::endian::little, "files here are read as little-endian");

Result<File> File::open(tn_ctx* ctx, const std::string& path) {
  tn_blob* blob = nullptr;
  TN_CHECK(services.blob->open(ctx, str(path), &blob));
  Result<File> file = of(blob);
  services.blob->release(blob);
  return file;
}

Result<File> File::of(tn_blob* blob) {
  services.blob->retain(blob);
  File file(blob, std::string(view(services.blob->path(blob))));
  uint64_t size = services.blob->size(blob);
  const void* data = nullptr;
  if (size > 0) TN_CHECK(services.blob->map(blob, 0, size, &data));
  file.bytes_ = {static_cast<const char*>(data), size};
  return file;
}

std::string stem_of(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

}  // namespace tenon::datasets
