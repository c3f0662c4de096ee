// SPDX-License-Identifier: Apache-2.0
#include "threads/placement.hpp"

#include <cstdio>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads/waiting.hpp"

namespace tenon::host::team {
namespace {

cpu_set_t only(int cpu) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cpu, &mask);
  return mask;
}

cpu_set_t all_but(int cpu, const cpu_set_t& allowed) {
  cpu_set_t mask = allowed;
  CPU_CLR(cpu, &mask);
  return CPU_COUNT(&mask) > 0 ? mask : allowed;
}

}  // namespace

void Placement::begin() {
  // On a machine of more CPUs than the set has bits this fails, and the worker stays movable by
  // the system alone.
  if (sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;
  if (pthread_getcpuclockid(pthread_self(), &clock_) != 0) return;
  set_ = allowed_;
  thread_.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_release);
}

void Placement::move(Place place) {
  if (place == Place::kAnywhere && this->place() == Place::kAnywhere) return;
  const int cpu = place == Place::kAnywhere ? -1 : sched_getcpu();
  if (place == this->place() && cpu == caller_cpu_) return;
  if (thread_.load(std::memory_order_acquire) == 0) return;
  place_.store(place, std::memory_order_relaxed);
  caller_cpu_ = cpu;
  if (place == Place::kAnywhere) return set(allowed_);
  if (CPU_ISSET(cpu, &allowed_) == 0) return;  // the caller's mask is another one
  set(place == Place::kApart ? all_but(cpu, allowed_) : only(cpu));
}

void Placement::hand_over() {
  const int cpu = sched_getcpu();
  if (thread_.load(std::memory_order_acquire) == 0 || CPU_ISSET(cpu, &allowed_) == 0) return;
  caller_cpu_ = -1;  // so that the next move() sets it anew
  set(only(cpu));
}

void Placement::set(const cpu_set_t& mask) {
  const int thread = thread_.load(std::memory_order_relaxed);
  cpu_set_t found;
  if (sched_getaffinity(thread, sizeof found, &found) != 0) return;
  if (CPU_EQUAL(&found, &set_) == 0) {  // somebody has decided otherwise: that counts
    allowed_ = found;
    set_ = found;
    return;
  }
  if (sched_setaffinity(thread, sizeof mask, &mask) == 0) set_ = mask;
}

uint64_t Placement::cpu_ns() const {
  return thread_.load(std::memory_order_acquire) == 0 ? 0 : read_clock(clock_);
}

uint64_t Placement::waited_ns() const {
  char path[48];
  const int thread = thread_.load(std::memory_order_acquire);
  std::snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", thread);
  unsigned long long ran = 0;
  unsigned long long waited = 0;
  if (std::FILE* file = std::fopen(path, "re")) {
    if (std::fscanf(file, "%llu %llu", &ran, &waited) != 2) waited = 0;
    std::fclose(file);
  }
  return waited;
}

}  // namespace tenon::host::team
