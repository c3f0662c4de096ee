// SPDX-License-Identifier: Apache-2.0
// Affinity masks and the quotas of control groups, written as the kernel shows them.
#include "threads/budget.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

namespace tenon::host::team {
namespace {

namespace fs = std::filesystem;

class Budget : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / "tenon_budget" / test->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }
  ControlGroupFiles files() const {
    return {(folder_ / "cgroup").string(), (folder_ / "fs").string()};
  }

  fs::path folder_;
};

TEST_F(Budget, HasNoQuotaWithoutGroups) {
  EXPECT_TRUE(std::isinf(quota_cpus(files())));
  write("cgroup", "0::/a\n");
  write("fs/a/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(quota_cpus(files())));
}

TEST_F(Budget, TakesTheLeastOfAllGroupsAbove) {
  write("cgroup", "0::/pod/box/part\n");
  write("fs/pod/box/part/cpu.max", "400000 100000\n");
  write("fs/pod/box/cpu.max", "max 100000\n");
  write("fs/pod/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota_cpus(files()), 1.5);
  EXPECT_EQ(thread_budget(files()), 1);
}

TEST_F(Budget, ReadsTheRootWhereThePathIsNotMounted) {
  write("cgroup", "0::/outside/of/the/container\n");
  write("fs/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(quota_cpus(files()), 0.5);
  EXPECT_EQ(thread_budget(files()), 1);
}

TEST_F(Budget, ReadsTheFirstVersionOfGroups) {
  write("cgroup", "3:cpuset:/\n2:cpu,cpuacct:/pod\n1:name=systemd:/\n");
  write("fs/cpu/pod/cpu.cfs_quota_us", "250000\n");
  write("fs/cpu/pod/cpu.cfs_period_us", "100000\n");
  write("fs/cpu/cpu.cfs_quota_us", "-1\n");
  write("fs/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota_cpus(files()), 2.5);
}

TEST_F(Budget, IgnoresWhatIsNoQuota) {
  write("cgroup", "nonsense\n0::/a\n");
  write("fs/a/cpu.max", "a lot\n");
  write("fs/cpu.max", "100000 0\n");
  EXPECT_TRUE(std::isinf(quota_cpus(files())));
}

TEST_F(Budget, TakesAPathWithoutSlashes) {
  write("cgroup", "0::part\n");
  write("fs/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(quota_cpus(files()), 0.5);
}

TEST_F(Budget, IsOneOnOneCpu) {
  int budget = 0;
  std::thread([&budget, this] {  // the mask is the thread's own
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    budget = thread_budget(files());
  })
      .join();
  EXPECT_EQ(budget, 1);
}

}  // namespace
}  // namespace tenon::host::team
