// SPDX-License-Identifier: Apache-2.0
#pragma once
// A compiled graph. Immutable but for a free list of run slots: a slot is the list of calls with
// the addresses of one run filled in, so that runs from many threads share primitives and weights
// and nothing else. In the steady state a run allocates nothing of its own and looks nothing up by
// name.
//
//   Executable exe(graph, options, store);
//   exe.run({inputs, outputs, workspace, parallel});

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lowering/lowering.hpp"
#include "team/team.hpp"

namespace tenon::onednn {

struct RunRequest {
  std::span<const void* const> inputs;  // dense, row-major, in the graph's order
  std::span<void* const> outputs;
  std::span<void* const> states = {};  // in the order of Graph::states
  void* workspace = nullptr;           // workspace_bytes(), 64-byte aligned
  // Of a loop's body: captured inputs, and the workspace, are as the run before has left them.
  bool repeats = false;
  kernels::Parallel parallel = {};
  std::vector<uint64_t>* step_ns = nullptr;  // when timing: [steps]
  bool (*is_cancelled)(const void*) = nullptr;
  const void* cancel = nullptr;
  // Notified of each step where somebody records a trace: of its name, and NULL when it has ended.
  void (*span)(const void*, const std::string* name) = nullptr;
  const void* traced = nullptr;
};

// What a run returns that was cancelled.
constexpr const char* kCancelled = "cancelled";

class Executable {
 public:
  // Throws CompileError or dnnl::error.
  Executable(const Graph& graph, const CompileOptions& options, WeightStore& store);
  // Of a plan that only lacks its arena.
  Executable(Plan plan, int threads, dnnl::engine engine);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  int64_t workspace_bytes() const { return static_cast<int64_t>(arena_.bytes); }
  const tn_arena_size& arena() const { return arena_; }
  const Plan& plan() const { return plan_; }
  int threads() const { return threads_; }
  // nullptr, or what went wrong, with the step's name in *where. [any thread]
  const char* run(const RunRequest& request, const Step** where = nullptr);
  class Sequence;

 private:
  struct Call;  // one step with addresses
  struct Slot;
  Slot* acquire();
  void release(Slot* slot);
  void fill(Slot& slot, const RunRequest& request) const;
  void finish();
  const char* execute(Slot& slot,
                      team::Hold& team,
                      const RunRequest& request,
                      const Step** where) const;

  Plan plan_;
  tn_arena_size arena_;
  int threads_;
  bool has_primitives_ = false;  // whose ids may wait for each other
  dnnl::engine engine_;
  kernels::Level level_;
  std::mutex mutex_;  // guards free_
  std::vector<std::unique_ptr<Slot>> slots_;
  Slot* free_ = nullptr;
};

// Runs one after the other on one thread, as a loop's: the team and the slot are taken once.
class Executable::Sequence {
 public:
  explicit Sequence(Executable& executable);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  const char* run(const RunRequest& request, const Step** where);

 private:
  Executable& executable_;
  team::Hold team_;
  Slot* slot_;
};

}  // namespace tenon::onednn
