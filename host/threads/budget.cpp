// SPDX-License-Identifier: Apache-2.0
#include "threads/budget.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include <sched.h>

namespace tenon::host::team {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

// v2: "max 100000", "150000 100000": quota and period in microseconds.
double quota_of_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return kNoQuota;
  return std::strtod(quota.c_str(), nullptr) / period;
}

double quota_of_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return kNoQuota;
  return quota <= 0 || period <= 0 ? kNoQuota : quota / period;
}

int affinity_cpus() {
  // A mask has as many bits as the kernel was built for: ask with more until it fits.
  for (size_t cpus = 1024; cpus <= (size_t{1} << 20); cpus *= 2) {
    std::vector<unsigned long> mask(cpus / (8 * sizeof(unsigned long)));
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    const size_t bytes = mask.size() * sizeof(unsigned long);
    if (sched_getaffinity(0, bytes, set) == 0) return CPU_COUNT_S(bytes, set);
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

double quota_cpus(const ControlGroupFiles& files) {
  double least = kNoQuota;
  for_each_group(files, "cpu", [&](const ControlGroup& group) {
    auto* quota_of = group.is_second ? quota_of_v2 : quota_of_v1;
    least = std::min(least, quota_of(group.folder));
  });
  return least;
}

int thread_budget(const ControlGroupFiles& files) {
  const double cpus = std::min(quota_cpus(files), static_cast<double>(affinity_cpus()));
  return std::max(1, static_cast<int>(cpus));
}

}  // namespace tenon::host::team
