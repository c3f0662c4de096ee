// SPDX-License-Identifier: Apache-2.0
#include "memory/free_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string_view>

#include "tenon/cat.hpp"

#include "threads/control_groups.hpp"

namespace tenon::host {
namespace {

constexpr uint64_t kAskedFrom = uint64_t{1} << 28;

std::optional<uint64_t> number_in(const std::string& path) {
  uint64_t number = 0;
  if (std::ifstream file(path); file >> number) return number;
  return std::nullopt;  // "max" of version 2 as well
}

// The sum of lines such as "MemAvailable:  123 kB"; nullopt without any of them.
std::optional<uint64_t> sum_in(const std::string& path,
                               std::initializer_list<std::string_view> keys) {
  std::ifstream file(path);
  std::optional<uint64_t> sum;
  for (std::string line, key; std::getline(file, line);) {
    std::istringstream words(line);
    uint64_t number = 0;
    if (!(words >> key >> number)) continue;
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) sum = sum.value_or(0) + number;
  }
  return sum;
}

// What a version of control groups calls its files. What files were read into memory can be
// dropped again, though it counts as used.
struct Naming {
  std::string_view limit, used, swap_limit, swap_used, inactive, active;
  bool swap_includes_memory;
};
constexpr Naming kFirst{"memory.limit_in_bytes",
                        "memory.usage_in_bytes",
                        "memory.memsw.limit_in_bytes",
                        "memory.memsw.usage_in_bytes",
                        "total_inactive_file",
                        "total_active_file",
                        true};
constexpr Naming kSecond{"memory.max",
                         "memory.current",
                         "memory.swap.max",
                         "memory.swap.current",
                         "inactive_file",
                         "active_file",
                         false};

uint64_t less(uint64_t whole, uint64_t part) {
  return whole - std::min(whole, part);
}

// What a group leaves of its limits, if it has any; `swap` is what the machine has free.
std::optional<uint64_t> left_of(const std::string& folder, const Naming& names, uint64_t swap) {
  auto number = [&](std::string_view name) { return number_in(folder + std::string(name)); };
  const auto limit = number(names.limit), used = number(names.used);
  if (!limit || !used) return std::nullopt;
  const uint64_t cached =
      sum_in(folder + "memory.stat", {names.inactive, names.active}).value_or(0);
  const uint64_t left = less(*limit, less(*used, cached));
  const auto swap_limit = number(names.swap_limit), swap_used = number(names.swap_used);
  if (!swap_limit || !swap_used) return left + swap;
  if (names.swap_includes_memory)
    return std::min(left + swap, less(*swap_limit, less(*swap_used, cached)));
  return left + std::min(swap, less(*swap_limit, *swap_used));
}

void lower(std::optional<FreeMemory>& least, std::optional<uint64_t> bytes, std::string where) {
  if (bytes && (!least || *bytes < least->bytes)) least = {*bytes, std::move(where)};
}

bool is_checked() {
  const char* check = std::getenv("TENON_MEMORY_CHECK");
  return !check || std::string_view(check) != "off";
}

}  // namespace

std::optional<FreeMemory> free_memory(const std::string& root) {
  const std::string machine = root + "/proc/meminfo";
  auto available = sum_in(machine, {"MemAvailable:"});
  const uint64_t swap = sum_in(machine, {"SwapFree:"}).value_or(0) * 1024;
  std::optional<FreeMemory> least;
  if (available) lower(least, *available * 1024 + swap, "on this machine");
  const ControlGroupFiles files{root + "/proc/self/cgroup", root + "/sys/fs/cgroup"};
  for_each_group(files, "memory", [&](const ControlGroup& group) {
    lower(least, left_of(group.folder + "/", group.is_second ? kSecond : kFirst, swap),
          "in control group " + (group.name.empty() ? "/" : group.name));
  });
  return least;
}

bool fits_memory(uint64_t bytes) {
  if (bytes < kAskedFrom || !is_checked()) return true;
  std::optional<FreeMemory> free = free_memory();
  return !free || bytes <= free->bytes;
}

std::string no_memory_text(uint64_t bytes) {
  std::string text = cat("no memory for ", bytes, " bytes");
  std::optional<FreeMemory> free = free_memory();
  if (!free) return text;
  text += cat(", ", free->bytes, " are free ", free->where);
  return text + (is_checked() ? " (TENON_MEMORY_CHECK=off: try all the same)" : "");
}

}  // namespace tenon::host
