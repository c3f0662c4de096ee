// SPDX-License-Identifier: Apache-2.0
// Changes samples of all operator rows and runs what is accepted (tests/fuzz/README.md). Mutants
// run in a child: when it dies, the mutant is reported and the next one goes on in another child.
// usage: fuzz_mutants [--seed N] [--from N] [--count N] [--backend ID]... [--row TYPE]
//                     [--keep FOLDER] [--guard N]: one of N allocations ends at a page out of reach
//                     [--extremes 1]: samples with one integer at an end of what it holds
//                     [--state FILE]: what is done so far, where the same command goes on
//                     [--every N]: seconds until it is written again
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../resume.hpp"
#include "../state_folder.hpp"
#include "guard.hpp"
#include "limit.hpp"
#include "trial.hpp"

// What is too large for any memory is refused as a user's machine would refuse it: malloc says no,
// and the library has to answer with an error.
#if defined(__SANITIZE_ADDRESS__)
// Visible, or the sanitizer's library does not find it.
extern "C" [[gnu::visibility("default")]] const char*
__asan_default_options() {  // NOLINT: the name
  return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}
#endif

namespace {

using tenon::fuzz::Resume;
using tenon::fuzz::Tally;

constexpr unsigned kSeconds = 20;  // for one mutant

struct Arguments {
  uint64_t seed = 1, from = 0, count = 20000, guard = 0, every = 5, extremes = 0;
  std::vector<std::string> backends;
  std::string row, keep, state;
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
    else if (key == "--extremes")
      out.extremes = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--every")
      out.every = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--backend")
      out.backends.push_back(value);
    else if (key == "--row")
      out.row = value;
    else if (key == "--keep")
      out.keep = value;
    else if (key == "--state")
      out.state = value;
    else
      return false;
  }
  if (out.backends.empty()) out.backends = {"reference", "onednn"};
  return argc % 2 == 1 && out.backends.size() <= tenon::fuzz::kMostBackends;
}

// The numbers of a tally beside their names in the file of a run.
std::vector<std::pair<std::string, std::atomic<uint64_t>*>> counts(const Arguments& arguments,
                                                                   Tally& tally) {
  std::vector<std::pair<std::string, std::atomic<uint64_t>*>> out{
      {"next", &tally.next},   {"mutants", &tally.mutants},       {"refused", &tally.refused},
      {"large", &tally.large}, {"executions", &tally.executions}, {"findings", &tally.findings}};
  for (size_t i = 0; i < arguments.backends.size(); ++i) {
    out.emplace_back("compiled on " + arguments.backends[i], &tally.compiled[i]);
    out.emplace_back("ran on " + arguments.backends[i], &tally.ran[i]);
  }
  return out;
}

Resume::Json report(const Arguments& arguments, Tally& tally) {
  Resume::Json out;
  for (const auto& [name, count] : counts(arguments, tally))
    out[name] = count->load();
  return out;
}

// The same without a sanitizer, which needs more of the address space than this. Whether it is in
// force is tried: without, the machine's memory ends the run. reserved: bytes of the address space
// that the limit leaves out.
bool limit_memory([[maybe_unused]] uint64_t reserved) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr size_t kMostBytes = size_t{1} << 30;
#else
  constexpr size_t kMostBytes = size_t{8} << 30;
  const rlimit limit{kMostBytes + reserved, kMostBytes + reserved};
  setrlimit(RLIMIT_AS, &limit);
#endif
  void* volatile taken = std::malloc(kMostBytes + 1);
  std::free(taken);
  if (!taken) return true;
  std::fprintf(stderr, "fuzz_mutants: expected malloc to refuse %zu bytes\n", kMostBytes + 1);
  return false;
}

int work(const Arguments& arguments, Tally& tally, Resume& resume) {
  tenon::fuzz::Trials trials(arguments.seed, arguments.backends, arguments.row, arguments.keep,
                             arguments.extremes != 0);
  while (tally.next < arguments.from + arguments.count) {
    tenon::fuzz::limit_seconds(kSeconds);
    tenon::fuzz::guard_memory(arguments.guard, tally.next);
    trials.run(tally.next, tally);
    tenon::fuzz::guard_memory(0, 0);
    ++tally.next;
    resume.tick([&] { return report(arguments, tally); });
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
  Resume resume(arguments.state,
                {{"seed", arguments.seed},
                 {"from", arguments.from},
                 {"guard", arguments.guard},
                 {"backends", arguments.backends},
                 {"row", arguments.row},
                 {"extremes", arguments.extremes}},
                arguments.every);
  Resume::Json before;
  if (std::string why = resume.read(before); !why.empty())
    return std::fprintf(stderr, "fuzz_mutants: %s\n", why.c_str()), 2;
  void* memory =
      mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  tenon::fuzz::StateFolder state;
  Tally& tally = *new (memory) Tally;
  tally.next = arguments.from;
  for (const auto& [name, count] : counts(arguments, tally))
    *count = before.value(name, count->load());
  if (!limit_memory(arguments.guard ? tenon::fuzz::reserve_guarded() : 0)) return 2;
  auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  for (bool done = tally.next >= arguments.from + arguments.count; !done;) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) std::exit(work(arguments, tally, resume));
    int status = 0;
    waitpid(child, &status, 0);
    done = tally.next >= arguments.from + arguments.count;
    if (status == 0) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == tenon::fuzz::kCannotRun)
      return WEXITSTATUS(status);
    ++tally.findings;
    std::printf("FOUND mutant %llu: %s: %s %d\n", number(tally.next),
                done ? "at the end" : tally.what, WIFSIGNALED(status) ? "signal" : "exit code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    std::fflush(stdout);
    ++tally.next;
    resume.write(report(arguments, tally));
  }
  resume.write(report(arguments, tally));
  double took = resume.seconds();
  std::printf(
      "seed %llu: %llu mutants, %.1f %% refused, %.1f %% too large; %.0f s, %.0f executions a "
      "second\n",
      number(arguments.seed), number(tally.mutants), percent(tally.refused, tally.mutants),
      percent(tally.large, tally.mutants), took,
      static_cast<double>(tally.executions) / std::max(took, 1e-3));
  bool is_deep = true;
  for (size_t i = 0; i < arguments.backends.size(); ++i) {
    double compiled = percent(tally.compiled[i], tally.mutants);
    double ran = percent(tally.ran[i], tally.mutants);
    std::printf("%s: %.1f %% compiled, %.1f %% ran\n", arguments.backends[i].c_str(), compiled,
                ran);
    is_deep = is_deep && compiled >= 30 && ran >= 10;
  }
  std::printf("%llu findings\n", number(tally.findings));
  const bool is_whole = arguments.row.empty() && arguments.extremes == 0;
  if (is_whole && !is_deep) std::puts("expected 30 % compiled and 10 % run on each backend");
  return tally.findings == 0 && (is_deep || !is_whole) ? 0 : 1;
}
