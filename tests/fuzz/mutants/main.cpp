// SPDX-License-Identifier: Apache-2.0
// Changes samples of all operator rows and runs what is accepted (tests/fuzz/README.md). Mutants
// run in a child: when it dies, the mutant is told and the next one goes on in another child.
// usage: fuzz_mutants [--seed N] [--from N] [--count N] [--row TYPE] [--keep FOLDER]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../state_folder.hpp"
#include "trial.hpp"

namespace {

using tenon::fuzz::Tally;

constexpr unsigned kSeconds = 20;  // for one mutant

struct Arguments {
  uint64_t seed = 1, from = 0, count = 20000;
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
    else if (key == "--row")
      out.row = value;
    else if (key == "--keep")
      out.keep = value;
    else
      return false;
  }
  return argc % 2 == 1;
}

int work(const Arguments& arguments, Tally& tally) {
  tenon::fuzz::Trials trials(arguments.seed, arguments.row, arguments.keep);
  while (tally.next < arguments.from + arguments.count) {
    alarm(kSeconds);
    trials.run(tally.next, tally);
    ++tally.next;
  }
  alarm(0);
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
  for (bool done = false; !done;) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) std::exit(work(arguments, tally));
    int status = 0;
    waitpid(child, &status, 0);
    done = tally.next >= arguments.from + arguments.count;
    if (status == 0) continue;
    ++findings;
    std::printf("FOUND mutant %llu: %s: %s %d\n", static_cast<unsigned long long>(tally.next),
                done ? "at the end" : tally.what, WIFSIGNALED(status) ? "signal" : "exit code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    std::fflush(stdout);
    ++tally.next;
  }
  std::printf(
      "seed %llu: %llu mutants: %.1f %% refused, %.1f %% too large, %.1f %% compiled, "
      "%.1f %% ran; %llu findings\n",
      static_cast<unsigned long long>(arguments.seed),
      static_cast<unsigned long long>(tally.mutants.load()), percent(tally.refused, tally.mutants),
      percent(tally.large, tally.mutants), percent(tally.compiled, tally.mutants),
      percent(tally.ran, tally.mutants), static_cast<unsigned long long>(findings));
  bool is_deep =
      percent(tally.compiled, tally.mutants) >= 30 && percent(tally.ran, tally.mutants) >= 10;
  if (!is_deep) std::puts("expected 30 % compiled and 10 % run");
  return findings == 0 && (is_deep || !arguments.row.empty()) ? 0 : 1;
}
