// SPDX-License-Identifier: Apache-2.0
// A guard that finds nothing would let every mutant pass.
#include "guard.hpp"

#include <cstdlib>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace tenon::fuzz {
namespace {

// The compiler knows what malloc is for, and must not see through.
char* allocated(size_t size) {
  guard_memory(1, 0);
  void* volatile out = std::malloc(size);
  guard_memory(0, 0);
  return static_cast<char*>(out);
}
void write_at(char* memory, ptrdiff_t i) {
  volatile char* place = memory + i;
  *place = 1;
}

TEST(Guard, LetsMemoryBeUsedToItsLastByte) {
  for (size_t size : {size_t{1}, size_t{16}, size_t{4096}, size_t{10000}}) {
    char* memory = allocated(size);
    std::memset(memory, 1, size);
    memory = static_cast<char*>(std::realloc(memory, size + 100));
    EXPECT_EQ(memory[size - 1], 1);
    std::free(memory);
  }
}
TEST(Guard, EndsTheProcessBeyondTheEnd) {
  char* memory = allocated(64);
  EXPECT_EXIT(write_at(memory, 64), testing::KilledBySignal(SIGSEGV), "");
  std::free(memory);
}
TEST(Guard, EndsTheProcessWhenMemoryIsUsedAfterItWasGivenBack) {
  char* memory = allocated(64);
  char* volatile gone = memory;
  std::free(memory);
  EXPECT_EXIT(write_at(gone, 0), testing::KilledBySignal(SIGSEGV), "");
}
TEST(Guard, SeesWhatWasWrittenBesideTheBytes) {
  auto spoil = [](ptrdiff_t i) {
    char* memory = allocated(5);
    write_at(memory, i);
    std::free(memory);
  };
  EXPECT_EXIT(spoil(5), testing::KilledBySignal(SIGABRT), "beyond the end");
  EXPECT_EXIT(spoil(-1), testing::KilledBySignal(SIGABRT), "before the beginning");
}
TEST(Guard, GivesZeroesWhereTheyAreAskedFor) {
  guard_memory(1, 0);
  auto* memory = static_cast<char*>(std::calloc(3, 50));
  guard_memory(0, 0);
  EXPECT_EQ(std::vector<char>(memory, memory + 150), std::vector<char>(150, 0));
  std::free(memory);
}

}  // namespace
}  // namespace tenon::fuzz
