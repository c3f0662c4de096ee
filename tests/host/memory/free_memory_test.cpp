// SPDX-License-Identifier: Apache-2.0
#include "memory/free_memory.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tenon::host {
namespace {

// A folder that stands for the root of a machine with 8 GiB free.
class FreeMemory : public testing::Test {
 protected:
  FreeMemory()
      : root_(std::filesystem::temp_directory_path() / ("memory_" + std::to_string(getpid()))) {
    write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable:    8388608 kB\nSwapFree: 0 kB\n");
  }
  ~FreeMemory() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::optional<uint64_t> free() {
    auto found = free_memory(root_);
    return found ? std::optional(found->bytes) : std::nullopt;
  }
  std::string where() { return free_memory(root_)->where; }

  std::filesystem::path root_;
};

TEST_F(FreeMemory, IsThatOfTheMachineAndItsSwap) {
  EXPECT_EQ(free(), uint64_t{8} << 30);
  EXPECT_EQ(where(), "on this machine");
  write("proc/meminfo", "MemAvailable: 8388608 kB\nSwapTotal: 99 kB\nSwapFree: 1 kB\n");
  EXPECT_EQ(free(), (uint64_t{8} << 30) + 1024);
}

TEST_F(FreeMemory, IsNoMoreThanAGroupOfVersionTwoLeaves) {
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/memory.max", "1000000\n");
  write("sys/fs/cgroup/user/job/memory.current", "900000\n");
  EXPECT_EQ(free(), 100000u);
  EXPECT_EQ(where(), "in control group /user/job");
  write("sys/fs/cgroup/user/job/memory.stat", "anon 500000\ninactive_file 250000\nactive_file 5\n");
  EXPECT_EQ(free(), 350005u);
  write("sys/fs/cgroup/user/job/memory.max", "max\n");
  EXPECT_EQ(free(), uint64_t{8} << 30);
}

// Kubernetes gives its containers none of the machine's.
TEST_F(FreeMemory, HasNoMoreSwapThanAGroupMayUse) {
  write("proc/meminfo", "MemAvailable: 8388608 kB\nSwapFree: 8388608 kB\n");
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/memory.max", "1000\n");
  write("sys/fs/cgroup/job/memory.current", "400\n");
  EXPECT_EQ(free(), 600 + (uint64_t{8} << 30));
  write("sys/fs/cgroup/job/memory.swap.max", "50\n");
  write("sys/fs/cgroup/job/memory.swap.current", "20\n");
  EXPECT_EQ(free(), 630u);

  write("proc/self/cgroup", "5:memory:/job\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4000\n");
  write("sys/fs/cgroup/memory/job/memory.memsw.limit_in_bytes", "5700\n");
  write("sys/fs/cgroup/memory/job/memory.memsw.usage_in_bytes", "4100\n");
  EXPECT_EQ(free(), 1600u);  // of memory and swap together
}

TEST_F(FreeMemory, IsNoMoreThanTheGroupsAroundLeave) {
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/memory.max", "1000000\n");
  write("sys/fs/cgroup/user/job/memory.current", "0\n");
  write("sys/fs/cgroup/user/memory.max", "3000\n");
  write("sys/fs/cgroup/user/memory.current", "1000\n");
  EXPECT_EQ(free(), 2000u);
  EXPECT_EQ(where(), "in control group /user");
}

TEST_F(FreeMemory, IsNoMoreThanAGroupOfVersionOneLeaves) {
  write("proc/self/cgroup", "5:cpu,memory:/job\n4:devices:/other\n0::/\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4000\n");
  write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 600\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "70000\n");
  EXPECT_EQ(free(), 1600u);
}

TEST_F(FreeMemory, IsThatOfTheRootWhereAGroupIsSeenFromWithin) {
  write("proc/self/cgroup", "0::/../elsewhere\n");
  write("sys/fs/cgroup/memory.max", "700\n");
  write("sys/fs/cgroup/memory.current", "800\n");
  EXPECT_EQ(free(), 0u);
  EXPECT_EQ(where(), "in control group /");
}

TEST_F(FreeMemory, IsUnknownWhereNothingSays) {
  std::filesystem::remove_all(root_);
  EXPECT_EQ(free(), std::nullopt);
}

TEST(FitsMemory, RefusesMoreThanThereIsAndSaysWhatThereIs) {
  EXPECT_TRUE(fits_memory(1));
  auto free = free_memory();
  if (!free) GTEST_SKIP() << "the system does not say what is free";
  const uint64_t wanted = free->bytes + (uint64_t{1} << 36);
  EXPECT_FALSE(fits_memory(wanted));
  std::string text = no_memory_text(wanted);
  EXPECT_EQ(text.find("no memory for " + std::to_string(wanted) + " bytes, "), 0u) << text;
  EXPECT_NE(text.find(" are free " + free->where), std::string::npos) << text;
  EXPECT_NE(text.find("TENON_MEMORY_CHECK=off"), std::string::npos) << text;

  setenv("TENON_MEMORY_CHECK", "off", 1);
  EXPECT_TRUE(fits_memory(wanted));
  EXPECT_EQ(no_memory_text(wanted).find("TENON_MEMORY_CHECK"), std::string::npos);
  unsetenv("TENON_MEMORY_CHECK");
}

}  // namespace
}  // namespace tenon::host
