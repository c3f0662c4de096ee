// SPDX-License-Identifier: Apache-2.0
#include "imports.hpp"

#include <atomic>
#include <cstdint>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tenon::onednn::team {
namespace {

const link_map* library_of(const void* inside) {
  Dl_info info{};
  void* map = nullptr;
  if (dladdr1(inside, &info, &map, RTLD_DL_LINKMAP) == 0) return nullptr;
  return static_cast<const link_map*>(map);
}

#if defined(__x86_64__)
bool is_function_import(uint64_t type) {
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}
#elif defined(__aarch64__)
bool is_function_import(uint64_t type) {
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}
#else
bool is_function_import(uint64_t) {
  return false;
}
#endif

struct Table {
  const char* rows = nullptr;
  size_t bytes = 0;
};

// What the dynamic section names, as far as it is of use here.
struct Dynamic {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  Table calls;
  Table others;
};

Dynamic read_dynamic(const link_map& library) {
  // glibc has made these addresses absolute on some systems and left them relative on others.
  const auto address = [&library](ElfW(Addr) value) {
    const bool is_absolute = value >= library.l_addr;
    return reinterpret_cast<const char*>(is_absolute ? value : library.l_addr + value);
  };
  Dynamic found;
  for (const ElfW(Dyn)* row = library.l_ld; row->d_tag != DT_NULL; ++row) {
    const auto value = row->d_un;
    switch (row->d_tag) {
      case DT_SYMTAB:
        found.symbols = reinterpret_cast<const ElfW(Sym)*>(address(value.d_ptr));
        break;
      case DT_STRTAB:
        found.names = address(value.d_ptr);
        break;
      case DT_JMPREL:
        found.calls.rows = address(value.d_ptr);
        break;
      case DT_PLTRELSZ:
        found.calls.bytes = value.d_val;
        break;
      case DT_RELA:
        found.others.rows = address(value.d_ptr);
        break;
      case DT_RELASZ:
        found.others.bytes = value.d_val;
        break;
      default:
        break;
    }
  }
  return found;
}

// The part of a library that is write-protected once it is bound.
struct Protected {
  ElfW(Addr) base;  // of the library that is looked for
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

int find_protected(dl_phdr_info* info, size_t, void* out) {
  auto& found = *static_cast<Protected*>(out);
  if (info->dlpi_addr != found.base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info->dlpi_phdr[i];
    if (part.p_type != PT_GNU_RELRO) continue;
    found.begin = info->dlpi_addr + part.p_vaddr;
    found.end = found.begin + part.p_memsz;
  }
  return 1;
}

}  // namespace

std::vector<Import> imports_of(const void* inside) {
  std::vector<Import> imports;
  const link_map* library = library_of(inside);
  if (library == nullptr) return imports;
  const Dynamic dynamic = read_dynamic(*library);
  if (dynamic.symbols == nullptr || dynamic.names == nullptr) return imports;
  for (const Table& table : {dynamic.calls, dynamic.others}) {
    const auto* rows = reinterpret_cast<const ElfW(Rela)*>(table.rows);
    for (size_t i = 0; i < table.bytes / sizeof(ElfW(Rela)); ++i) {
      if (!is_function_import(ELF64_R_TYPE(rows[i].r_info))) continue;
      const ElfW(Sym) & symbol = dynamic.symbols[ELF64_R_SYM(rows[i].r_info)];
      if (symbol.st_shndx != SHN_UNDEF) continue;
      imports.push_back({dynamic.names + symbol.st_name,
                         reinterpret_cast<void**>(library->l_addr + rows[i].r_offset)});
    }
  }
  return imports;
}

bool replace(const void* inside, const Import& import, void* function) {
  const link_map* library = library_of(inside);
  if (library == nullptr) return false;
  Protected protected_part{library->l_addr};
  dl_iterate_phdr(find_protected, &protected_part);
  const auto place = reinterpret_cast<uintptr_t>(import.address);
  const bool is_protected = place >= protected_part.begin && place < protected_part.end;
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(place / page_bytes * page_bytes);
  if (is_protected && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  std::atomic_ref<void*>(*import.address).store(function, std::memory_order_release);
  // A page that is only half in the protected part stays writable, as the loader left it.
  if (is_protected && reinterpret_cast<uintptr_t>(page) + page_bytes <= protected_part.end)
    mprotect(page, page_bytes, PROT_READ);
  return true;
}

}  // namespace tenon::onednn::team
