// SPDX-License-Identifier: Apache-2.0
#include "discovery/description.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <optional>
#include <tuple>

#include <elf.h>

namespace tenon::host {
namespace {

constexpr std::string_view kSection = ".tenon.plugin";
constexpr uint64_t kLargestSection = uint64_t{16} << 20;
constexpr uint64_t kMostSections = 65535;
constexpr unsigned char kByteOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

// Reads of a file whose every offset and size comes from the file itself.
class CheckedFile {
 public:
  explicit CheckedFile(const std::filesystem::path& path) : in_(path, std::ios::binary) {
    std::error_code failed;
    size_ = std::filesystem::file_size(path, failed);
    if (failed) size_ = 0;
  }
  bool open() const { return in_.is_open(); }
  bool read(uint64_t offset, void* into, uint64_t bytes) {
    if (offset > size_ || bytes > size_ - offset) return false;
    in_.seekg(static_cast<std::streamoff>(offset));
    in_.read(static_cast<char*>(into), static_cast<std::streamsize>(bytes));
    return in_.good();
  }
  std::optional<std::string> text(uint64_t offset, uint64_t bytes) {
    if (bytes > kLargestSection || offset > size_ || bytes > size_ - offset) return {};
    std::string out(bytes, '\0');
    if (!read(offset, out.data(), bytes)) return {};
    return out;
  }

 private:
  std::ifstream in_;
  uint64_t size_ = 0;
};

Status bad(std::string_view what) {
  return {TN_DATA_LOSS, what};
}

Result<Elf64_Ehdr> read_header(CheckedFile& file) {
  Elf64_Ehdr header;
  if (!file.read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return bad("not a shared library: expected an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder)
    return bad("built for another machine: expected a 64-bit library of this byte order");
  if (header.e_type != ET_DYN) return bad("not a shared library: expected ELF type DYN");
  if (header.e_shentsize != sizeof(Elf64_Shdr))
    return bad("no section table: was it removed from the file?");
  return header;
}

// The bytes of the section; empty when the file has no such section.
Result<std::string> read_section(CheckedFile& file) {
  TN_TRY(header, read_header(file));
  auto section_at = [&](uint64_t i, Elf64_Shdr& out) {
    uint64_t offset = header.e_shoff + i * sizeof out;
    return offset >= header.e_shoff && file.read(offset, &out, sizeof out);
  };
  Elf64_Shdr first{};
  Elf64_Shdr names_at{};
  if (!section_at(0, first)) return bad("broken section table");
  // Counts that do not fit 16 bits are kept in section 0 (ELF specification, section header).
  uint64_t count = header.e_shnum ? header.e_shnum : first.sh_size;
  uint64_t names_index = header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx;
  if (count > kMostSections || names_index >= count || !section_at(names_index, names_at))
    return bad("broken section table");
  std::optional<std::string> names = file.text(names_at.sh_offset, names_at.sh_size);
  if (!names) return bad("broken table of section names");
  for (uint64_t i = 1; i < count; ++i) {
    Elf64_Shdr section{};
    if (!section_at(i, section)) return bad("broken section table");
    if (section.sh_name >= names->size() || kSection != names->c_str() + section.sh_name) continue;
    if (section.sh_type == SHT_NOBITS) return bad("section .tenon.plugin has no bytes");
    std::optional<std::string> bytes = file.text(section.sh_offset, section.sh_size);
    if (!bytes) return bad("section .tenon.plugin reaches beyond the end of the file");
    return *std::move(bytes);
  }
  return std::string();
}

// Takes texts off the front of a section.
class Texts {
 public:
  explicit Texts(std::string_view bytes) : rest_(bytes) {}
  std::optional<std::string_view> next() {
    size_t end = rest_.find('\0');
    if (end == std::string_view::npos) return {};
    std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  void skip_zeros() { rest_.remove_prefix(std::min(rest_.size(), rest_.find_first_not_of('\0'))); }
  bool empty() const { return rest_.empty(); }
  template <class... Fields>
  bool fill(Fields&... fields) {
    return (take(fields) && ...);
  }

 private:
  bool take(std::string& field) {
    std::optional<std::string_view> text = next();
    if (text) field = *text;
    return text.has_value();
  }
  std::string_view rest_;
};

}  // namespace

const ComponentText* PluginText::find(std::string_view role, std::string_view of_id) const {
  for (const ComponentText& c : components)
    if (c.role == role && c.id == of_id) return &c;
  return nullptr;
}

Result<PluginText> parse_description(std::string_view section) {
  PluginText plugin;
  Texts texts(section);
  bool found = false;
  for (texts.skip_zeros(); !texts.empty(); texts.skip_zeros()) {
    std::string_view kind = texts.next().value_or("");
    bool complete = true;
    if (kind == "TENON-PLUGIN-1") {
      if (found) return bad("the description has two TENON-PLUGIN-1 records: expected one");
      found = true;
      complete = texts.fill(plugin.id, plugin.version, plugin.name, plugin.vendor, plugin.license,
                            plugin.url);
    } else if (kind == "TENON-COMPONENT-1") {
      ComponentText& c = plugin.components.emplace_back();
      complete = texts.fill(c.role, c.id, c.version, c.summary, c.schema);
    } else {
      return bad(cat("the description has an unknown record '", kind.substr(0, 40),
                     "': expected TENON-PLUGIN-1 or TENON-COMPONENT-1; a newer Tenon may read it"));
    }
    if (!complete) return bad(cat("record ", kind, " of the description is cut short"));
  }
  if (!found || plugin.id.empty())
    return bad("the description lacks a TENON-PLUGIN-1 record with an id");
  for (ComponentText& c : plugin.components) {
    if (c.role.empty() || c.id.empty())
      return bad("a TENON-COMPONENT-1 record has no role or no id");
    c.plugin = plugin.id;
  }
  // The linker's order of records follows the order of compilation: lists and messages must not.
  auto named = [](const ComponentText& c) { return std::tie(c.role, c.id); };
  std::ranges::sort(plugin.components, {}, named);
  auto twice = std::ranges::adjacent_find(plugin.components, {}, named);
  if (twice != plugin.components.end())
    return bad(cat("the description has two components ", twice->id, " of role ", twice->role,
                   ": expected ids to be unique in a role"));
  return plugin;
}

Result<PluginText> read_description(const std::filesystem::path& path) {
  CheckedFile file(path);
  if (!file.open()) return not_found("cannot be read: missing, or no permission");
  TN_TRY(section, read_section(file));
  if (section.empty())
    return bad(
        "not a Tenon plugin: it has no section .tenon.plugin (build it with tenon_add_plugin)");
  return parse_description(section);
}

}  // namespace tenon::host
