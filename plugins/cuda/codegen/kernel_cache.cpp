// SPDX-License-Identifier: Apache-2.0
#include "kernel_cache.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <unistd.h>

#include "tenon/fnv.hpp"
#include "tenon/sdk/cache_folder.hpp"

namespace tenon::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'t', 'n', 'c', 'u', 'b', 'i', 'n', '1'};

struct Header {
  char magic[8];
  uint64_t key_bytes, code_bytes, sum;  // sum: of key and code
};

std::string packed(const std::string& key, const std::string& code) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key_bytes = key.size();
  header.code_bytes = code.size();
  header.sum = fnv1a(key + code);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + key + code;
}

// The code, when the file is whole and was made from this key.
std::optional<std::string> unpacked(const std::string& file, const std::string& key) {
  Header header{};
  if (file.size() < sizeof header) return {};
  std::memcpy(&header, file.data(), sizeof header);
  bool is_sized = std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
                  header.key_bytes == key.size() &&
                  header.code_bytes == file.size() - sizeof header - key.size();
  if (!is_sized || file.compare(sizeof header, key.size(), key) != 0) return {};
  if (fnv1a(std::string_view(file).substr(sizeof header)) != header.sum) return {};
  return file.substr(sizeof header + key.size());
}

// Beside the target, then renamed: readers see a whole file or none.
bool write_file(const fs::path& path, const std::string& content) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  fs::path beside = path;
  beside += cat(".", gettid(), ".", fnv1a(content));  // threads may make the same kernel at once
  std::ofstream out(beside, std::ios::binary);
  out << content;
  out.close();
  bool is_written = !out.fail();
  if (is_written) fs::rename(beside, path, failed);
  is_written = is_written && !failed;
  if (!is_written) fs::remove(beside, failed);
  return is_written;
}

}  // namespace

std::string KernelCache::default_folder() {
  return user_cache_folder("cuda");
}

Result<std::string> KernelCache::get(const std::string& symbol,
                                     const std::string& key,
                                     const Compile& compile) const {
  if (folder_.empty()) return compile();
  char number[24];
  std::snprintf(number, sizeof number, "%016llx", static_cast<unsigned long long>(fnv1a(key)));
  fs::path path = fs::path(folder_) / cat(symbol, "_", number, ".cubin");
  std::ifstream in(path, std::ios::binary);
  if (in) {
    std::ostringstream file;
    file << in.rdbuf();  // what cannot be read is left out
    if (std::optional<std::string> code = unpacked(file.str(), key)) return std::move(*code);
    note_(cat("cuda: kernel cache ", path.string(), " is damaged: compiled again"));
  }
  TN_TRY(code, compile());
  if (!write_file(path, packed(key, code))) {
    note_(cat("cuda: kernel cache ", path.string(), " cannot be written"));
  }
  return code;
}

}  // namespace tenon::cuda
