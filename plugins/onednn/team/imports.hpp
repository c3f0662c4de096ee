// SPDX-License-Identifier: Apache-2.0
#pragma once
// The import table of a loaded ELF library: which functions it calls elsewhere, and where to.

#include <string>
#include <vector>

namespace tenon::onednn::team {

struct Import {
  std::string name;
  void** address = nullptr;  // what a call through the table jumps to
};

// Of the library that `inside` lies in; empty where that is not known.
std::vector<Import> imports_of(const void* inside);

// Also where the loader has write-protected the table (RELRO), which is protected again.
bool replace(const void* inside, const Import& import, void* function);

}  // namespace tenon::onednn::team
