// SPDX-License-Identifier: Apache-2.0
// The file itself: which symbols it exports, and which it expects from others. Reads the dynamic
// symbol table of a 64-bit ELF file in this machine's byte order (System V ABI, chapters 4 and 5).
#include <cstring>
#include <fstream>

#include <elf.h>

#include "check.hpp"

namespace tenon::command::check {
namespace {

class File {
 public:
  explicit File(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  template <class T>
  T at(uint64_t offset) const {
    T out{};
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof out)
      broken(cat("a table at byte ", offset, " goes beyond the file's end"));
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return out;
  }
  std::string text(uint64_t offset) const {
    size_t end = offset < bytes_.size() ? bytes_.find('\0', offset) : std::string::npos;
    if (end == std::string::npos) broken("a name goes beyond the file's end");
    return bytes_.substr(offset, end - offset);
  }
  bool is_library() const {
    return bytes_.size() > sizeof(Elf64_Ehdr) && bytes_.compare(0, SELFMAG, ELFMAG) == 0 &&
           bytes_[EI_CLASS] == ELFCLASS64;
  }

 private:
  std::string bytes_;
};

void look_at_symbol(const Elf64_Sym& symbol,
                    const std::string& name,
                    std::vector<std::string>& out) {
  if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || name.empty()) return;
  bool is_entry = name == "tenon_plugin_entry";
  if (symbol.st_shndx == SHN_UNDEF) {
    for (const char* sanitizer : {"__asan_", "__ubsan_", "__tsan_", "__msan_"})
      if (name.starts_with(sanitizer))
        out.push_back(cat("symbol ", name, ": expected a build without sanitizers"));
    if (name.starts_with("tenon_") || name.starts_with("tn_"))
      out.push_back(cat("symbol ", name, ": expected host services only, it wants libtenon's"));
  } else if (!is_entry) {
    out.push_back(cat("symbol ", name, ": expected tenon_plugin_entry to be all that it exports"));
  }
}

void look_at_section(const File& file,
                     const Elf64_Ehdr& head,
                     const Elf64_Shdr& section,
                     std::vector<std::string>& out) {
  auto names = file.at<Elf64_Shdr>(head.e_shoff + section.sh_link * uint64_t{head.e_shentsize});
  bool is_symbols = section.sh_type == SHT_DYNSYM;
  uint64_t each = is_symbols ? sizeof(Elf64_Sym) : sizeof(Elf64_Dyn);
  for (uint64_t i = 0; i < section.sh_size / each; ++i) {
    if (is_symbols) {
      auto symbol = file.at<Elf64_Sym>(section.sh_offset + i * each);
      look_at_symbol(symbol, file.text(names.sh_offset + symbol.st_name), out);
      continue;
    }
    auto entry = file.at<Elf64_Dyn>(section.sh_offset + i * each);
    if (entry.d_tag != DT_NEEDED) continue;
    std::string needed = file.text(names.sh_offset + entry.d_un.d_val);
    if (needed.starts_with("libtenon"))
      out.push_back(cat("needs ", needed, ": expected a plugin to link no library of Tenon"));
  }
}

}  // namespace

std::vector<std::string> library_faults(const std::string& path) {
  std::vector<std::string> out;
  try {
    File file(path);
    if (!file.is_library()) broken("expected a 64-bit ELF library");
    auto head = file.at<Elf64_Ehdr>(0);
    for (uint64_t i = 0; i < head.e_shnum; ++i) {
      auto section = file.at<Elf64_Shdr>(head.e_shoff + i * head.e_shentsize);
      if (section.sh_type == SHT_DYNSYM || section.sh_type == SHT_DYNAMIC)
        look_at_section(file, head, section, out);
    }
  } catch (const std::exception& failed) {
    out.emplace_back(failed.what());
  }
  return out;
}

}  // namespace tenon::command::check
