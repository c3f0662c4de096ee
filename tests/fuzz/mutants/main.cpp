// SPDX-License-Identifier: Apache-2.0
// Changes samples of all operator rows and runs what is accepted (tests/fuzz/README.md). Mutants
// run in a child: when it dies, the mutant is reported and the next one goes on in another child.
// usage: fuzz_mutants [--seed N] [--from N] [--count N] [--backend ID]... [--row TYPE]
//                     [--keep FOLDER] [--guard N]: one of N allocations ends at a page out of reach
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../state_folder.hpp"
#include "guard.hpp"
#include "limit.hpp"
#include "trial.hpp"

namespace {

using tenon::fuzz::Tally;

constexpr unsigned kSeconds = 20;  // for one mutant

struct Arguments {
  uint64_t seed = 1, from = 0, count = 20000, guard = 0;
  std::vector<std::string> backends;
  std::string row, keep;
};

bool read(int argc, char** argv, Arguments& out) {
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string key = argv[i], value = argv[i + 1];
    if (key == "--seed")
      out.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--from")
      out.from = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--count")
      out.count = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--guard")
      out.guard = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--backend")
      out.backends.push_back(value);
    else if (key == "--row")
      out.row = value;
    else if (key == "--keep")
      out.keep = value;
    else
      return false;
  }
  if (out.backends.empty()) out.backends = {"reference", "onednn"};
  return argc % 2 == 1 && out.backends.size() <= tenon::fuzz::kMostBackends;
}

int work(const Arguments& arguments, Tally& tally) {
  tenon::fuzz::Trials trials(arguments.seed, arguments.backends, arguments.row, arguments.keep);
  while (tally.next < arguments.from + arguments.count) {
    tenon::fuzz::limit_seconds(kSeconds);
    tenon::fuzz::guard_memory(arguments.guard, tally.next);
    trials.run(tally.next, tally);
    tenon::fuzz::guard_memory(0, 0);
    ++tally.next;
  }
  tenon::fuzz::limit_seconds(0);
  return 0;
}

double percent(uint64_t part, uint64_t all) {
  return all ? 100.0 * static_cast<double>(part) / static_cast<double>(all) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!read(argc, argv, arguments))
    return std::fputs("fuzz_mutants: see its first lines\n", stderr), 2;
  void* memory =
      mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  tenon::fuzz::StateFolder state;
  Tally& tally = *new (memory) Tally;
  tally.next = arguments.from;
  uint64_t findings = 0;
  auto start = std::chrono::steady_clock::now();
  auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  for (bool done = false; !done;) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) std::exit(work(arguments, tally));
    int status = 0;
    waitpid(child, &status, 0);
    done = tally.next >= arguments.from + arguments.count;
    if (status == 0) continue;
    ++findings;
    std::printf("FOUND mutant %llu: %s: %s %d\n", number(tally.next),
                done ? "at the end" : tally.what, WIFSIGNALED(status) ? "signal" : "exit code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    std::fflush(stdout);
    ++tally.next;
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf(
      "seed %llu: %llu mutants, %.1f %% refused, %.1f %% too large; %.0f s, %.0f executions a "
      "second\n",
      number(arguments.seed), number(tally.mutants), percent(tally.refused, tally.mutants),
      percent(tally.large, tally.mutants), took.count(),
      static_cast<double>(tally.executions) / std::max(took.count(), 1e-3));
  bool is_deep = true;
  for (size_t i = 0; i < arguments.backends.size(); ++i) {
    double compiled = percent(tally.compiled[i], tally.mutants);
    double ran = percent(tally.ran[i], tally.mutants);
    std::printf("%s: %.1f %% compiled, %.1f %% ran\n", arguments.backends[i].c_str(), compiled,
                ran);
    is_deep = is_deep && compiled >= 30 && ran >= 10;
  }
  std::printf("%llu findings\n", number(findings));
  if (!is_deep) std::puts("expected 30 % compiled and 10 % run on each backend");
  return findings == 0 && (is_deep || !arguments.row.empty()) ? 0 : 1;
}
