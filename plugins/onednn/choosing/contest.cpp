// SPDX-License-Identifier: Apache-2.0
#include "contest.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <time.h>
#include <unistd.h>

#include "tenon/sdk/backend/report.hpp"

#include "executable.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kContestNs = 6'000'000;  // of all rounds together, where fewest take no longer
constexpr size_t kMostRounds = 15;
constexpr int64_t kLeastTimedNs = 20'000;         // shorter steps are repeated for one time
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of scratch memory
// Neither zeros nor subnormal numbers, which some CPUs multiply slowly: 0.75 in f32 and bf16, and
// 63 in 8 bits.
constexpr int kFill = 0x3F;

int64_t now_ns() {
  return static_cast<int64_t>(backend::now_ns());
}

// Alone, a thread's own time: what it waits for others of the machine does not count.
int64_t time_of_work(int threads) {
  if (threads > 1) return now_ns();
  constexpr int64_t kNsOfSecond = 1'000'000'000;
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * kNsOfSecond + now.tv_nsec;
}

int64_t constant_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (plan.buffers[i].kind == Buffer::Kind::kConstant && plan.is_read[i])
      bytes += plan.buffers[i].bytes;
  return bytes;
}

// The same with constants in memory of its own.
Plan with_own_constants(Plan plan) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    Buffer& buffer = plan.buffers[i];
    if (buffer.kind != Buffer::Kind::kConstant || !plan.is_read[i]) continue;
    std::shared_ptr<void> copy = aligned_bytes(buffer.bytes);
    std::memcpy(copy.get(), buffer.data, static_cast<size_t>(buffer.bytes));
    buffer.data = copy.get();
    buffer.keeper = std::move(copy);
  }
  return plan;
}

// With how many such layers in turn nothing of one is left in the cores' caches when it runs again.
// Then each run finds its weights where a network finds them, and what it reads of the step in
// front of it where that left it; emptying the caches would take both away.
int64_t copies_of(const Plan& plan, int64_t other_bytes, const Contest& contest) {
  constexpr int64_t kMostCopies = 64;
  static const int64_t kCache = std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 1 << 18);
  const int64_t bytes = constant_bytes(plan);
  if (!contest.reads_cold_weights || bytes == 0) return 1;
  const int64_t room = kCache * contest.threads * 3 / 2 - other_bytes;
  return std::clamp<int64_t>(room / bytes + 1, 1, kMostCopies);
}

class Runner {
 public:
  Runner(const Plan& plan, const Contest& contest) : threads_(contest.threads) {
    layers_.push_back(std::make_unique<Executable>(plan, contest.threads, contest.engine));
    bytes_ = layers_[0]->workspace_bytes();
    if (!fits()) return;
    for (int64_t n = copies_of(plan, bytes_, contest); layers() < n;)
      layers_.push_back(
          std::make_unique<Executable>(with_own_constants(plan), contest.threads, contest.engine));
    memory_ = aligned_bytes(bytes_);
    std::memset(memory_.get(), kFill, static_cast<size_t>(bytes_));
  }

  bool fits() const { return bytes_ <= kMostBytes; }
  int64_t layers() const { return static_cast<int64_t>(layers_.size()); }

  // ns of a layer, over all of them so many times; negative: it cannot run on such data.
  int64_t time(int64_t repeats) {
    RunRequest request;
    request.workspace = memory_.get();
    const int64_t begin = time_of_work(threads_);
    for (int64_t i = 0; i < repeats; ++i)
      for (auto& layer : layers_)
        if (layer->run(request) != nullptr) return -1;
    return (time_of_work(threads_) - begin) / (repeats * layers());
  }

 private:
  int threads_;
  std::vector<std::unique_ptr<Executable>> layers_;
  int64_t bytes_ = 0;
  std::shared_ptr<void> memory_;
};

}  // namespace

Times hold_contest(Contest contest, int64_t budget_ns) {
  const int64_t begin = now_ns();
  std::vector<std::unique_ptr<Runner>> runners;
  for (const Contestant& contestant : contest.contestants) {
    runners.push_back(std::make_unique<Runner>(contestant.steps, contest));
    if (!runners.back()->fits()) return {};
  }
  int64_t round_ns = 0, repeats = 1;
  for (auto& runner : runners) {
    if (runner->time(1) < 0) return {};  // makes what is made in a first run
    const int64_t once = runner->time(1) * runner->layers();
    round_ns += once;
    repeats = std::max(repeats, kLeastTimedNs / std::max<int64_t>(once, 1));
    const int64_t left = budget_ns - (now_ns() - begin);
    if (static_cast<int64_t>(kFewestRounds) * round_ns > left) return {};
  }
  Times times(runners.size());
  while (times[0].size() < kMostRounds) {
    const int64_t spent = now_ns() - begin;
    const size_t round = times[0].size();
    if (round >= kFewestRounds && (spent > kContestNs || spent > budget_ns)) break;
    for (size_t i = 0; i < runners.size(); ++i) {
      // Each is as often behind the other as in front of it.
      const size_t turn = round % 2 == 0 ? i : runners.size() - 1 - i;
      times[turn].push_back(runners[turn]->time(repeats));
    }
  }
  return times;
}

}  // namespace tenon::onednn
