// SPDX-License-Identifier: Apache-2.0
#pragma once
// One mutant from its number: a row's sample, changed, read, compiled and run on every backend that
// runs here. Nothing is asked of the numbers; what must not happen is that the process dies.

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/tenon.h"

#include "mutation.hpp"

namespace tenon::fuzz {

constexpr size_t kMostBackends = 8;
constexpr int kCannotRun = 2;  // the exit code where a backend is not there

// What came of all mutants; lives in memory that outlives a process that dies.
struct Tally {
  std::atomic<uint64_t> next{0}, mutants{0}, refused{0}, large{0}, findings{0};
  std::atomic<uint64_t> compiled[kMostBackends] = {}, ran[kMostBackends] = {};  // by backend
  std::atomic<uint64_t> executions{0};  // runs of a plan, those of decompositions too
  char what[1000] = {};                 // the mutant of the moment, and where it runs
};

class Trials {
 public:
  // rows: those of this type only, or all. keep: a folder for the accepted ones as ONNX files, or
  // "".
  // extremes: each mutant is a sample with one integer at an end of what it holds, nothing else.
  Trials(uint64_t seed,
         std::vector<std::string> backends,
         std::string_view rows,
         std::string keep,
         bool extremes);
  ~Trials();
  Trials(const Trials&) = delete;
  void run(uint64_t number, Tally& tally);

 private:
  struct Mutant;
  Result<Mutant> make(const tn_op* row, uint64_t turn, Random& random, Tally& tally);
  Status add_given(EditView edit, Mutant& mutant, Random& random);
  Status add_late(EditView edit, Mutant& mutant, Random& random);
  struct Outcome {
    bool compiled = false, ran = false;
  };
  Outcome run_on(const Mutant& mutant,
                 const tn_graph* graph,
                 std::string_view backend,
                 Random random,
                 Tally& tally);
  void run_decomposed(const Mutant& mutant, Random random, Tally& tally);
  void save(const Mutant& mutant, uint64_t number, bool ran);

  tenon_session* session_ = nullptr;
  tn_ctx* ctx_ = nullptr;
  std::vector<const tn_op*> rows_;
  uint64_t seed_;
  std::vector<std::string> backends_;
  std::string keep_;
  bool extremes_;
};

}  // namespace tenon::fuzz
