// SPDX-License-Identifier: Apache-2.0
#include "contest.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "tenon/sdk/backend/report.hpp"

#include "cpu.hpp"
#include "executable.hpp"
#include "team_pool.hpp"

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

// Puts other memory into the caches of all cores of a team.
class Sweep {
 public:
  explicit Sweep(int threads)
      : threads_(threads),
        bytes_(2 * std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 1 << 18)),
        memory_(aligned_bytes(bytes_ * threads)) {}

  void run() {
    auto* memory = static_cast<char*>(memory_.get());
    kernels::parallel_for(team_pool(&threads_), threads_, 1, [&](int64_t lo, int64_t hi) {
      std::memset(memory + lo * bytes_, kFill, static_cast<size_t>((hi - lo) * bytes_));
    });
  }

 private:
  int threads_;
  int64_t bytes_;
  std::shared_ptr<void> memory_;
};

class Runner {
 public:
  Runner(Contestant contestant, const Contest& contest)
      : executable_(std::move(contestant.steps), contest.threads, contest.engine),
        bytes_(executable_.workspace_bytes()) {
    if (bytes_ > kMostBytes) return;
    memory_ = aligned_bytes(bytes_);
    std::memset(memory_.get(), kFill, static_cast<size_t>(bytes_));
  }

  bool fits() const { return bytes_ <= kMostBytes; }

  // ns; negative: it cannot run on such data.
  int64_t time(int64_t repeats) {
    RunRequest request;
    request.workspace = memory_.get();
    const int64_t begin = now_ns();
    for (int64_t i = 0; i < repeats; ++i)
      if (executable_.run(request) != nullptr) return -1;
    return (now_ns() - begin) / repeats;
  }

 private:
  Executable executable_;
  int64_t bytes_;
  std::shared_ptr<void> memory_;
};

}  // namespace

Times hold_contest(Contest contest, int64_t budget_ns) {
  const int64_t begin = now_ns();
  std::vector<std::unique_ptr<Runner>> runners;
  for (Contestant& contestant : contest.contestants) {
    runners.push_back(std::make_unique<Runner>(std::move(contestant), contest));
    if (!runners.back()->fits()) return {};
  }
  int64_t round_ns = 0, repeats = 1;
  for (auto& runner : runners) {
    if (runner->time(1) < 0) return {};  // makes what is made in a first run
    const int64_t once = runner->time(1);
    round_ns += once;
    repeats = std::max(repeats, kLeastTimedNs / std::max<int64_t>(once, 1));
    const int64_t left = budget_ns - (now_ns() - begin);
    if (static_cast<int64_t>(kFewestRounds) * round_ns > left) return {};
  }
  std::unique_ptr<Sweep> sweep;
  if (contest.reads_cold_weights) {
    sweep = std::make_unique<Sweep>(contest.threads);
    repeats = 1;
  }
  Times times(runners.size());
  while (times[0].size() < kMostRounds) {
    const int64_t spent = now_ns() - begin;
    const size_t round = times[0].size();
    if (round >= kFewestRounds && (spent > kContestNs || spent > budget_ns)) break;
    for (size_t i = 0; i < runners.size(); ++i) {
      // Each is as often behind the other as in front of it.
      const size_t turn = round % 2 == 0 ? i : runners.size() - 1 - i;
      if (sweep) sweep->run();
      times[turn].push_back(runners[turn]->time(repeats));
    }
  }
  return times;
}

}  // namespace tenon::onednn
