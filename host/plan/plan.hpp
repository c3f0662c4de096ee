// SPDX-License-Identifier: Apache-2.0
#pragma once
// A plan is a graph that runs: it keeps the graph and, for each set of input shapes that it meets,
// one Compiled (a bounded cache). A Compiled is a list of steps over slots; a RunContext holds the
// memory of one run in flight and is reused, so that a run in steady state allocates nothing.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tenon/host/eval.h"
#include "tenon/host/graph.h"
#include "tenon/role/op.h"

#include "backends/assignment.hpp"
#include "backends/backend_use.hpp"
#include "graph/graph.hpp"
#include "memory/run_memory.hpp"
#include "services/ref.hpp"
#include "services/session.hpp"
#include "sizes/size_symbols.hpp"

namespace tenon::host {

inline constexpr int kCpuSpace = -1;  // memory spaces are kCpuSpace or the index of a backend
inline constexpr int kNoSpace = -2;   // of a state that no run has met

struct Compiled;
using CompiledRef = std::shared_ptr<Compiled>;

// Its keeper is a backend, or the CPU: then two buffers are swapped after each run. Before the
// first run `now` may hold what was set.
struct State {
  std::string name;  // of its input
  uint32_t dtype;
  std::vector<int64_t> dims;
  int keeper = kNoSpace;
  Ref<tn_tensor> now = {}, next = {};
};

// What a plan keeps from run to run, in common with those that are compiled beside it: these have
// its options and backends.
struct States {
  explicit States(const BackendUses& users);
  ~States();
  States(const States&) = delete;
  // Those of these names, made where there are none; all or, where one is of another type or shape,
  // none.
  Result<std::vector<State*>> join(std::vector<State> wanted);
  State* find(std::string_view name);  // NULL: there is none

  // That this one runs now: what another one keeps on devices for its runs goes.
  void begin_run(Compiled& compiled);

  std::vector<BackendUse> backends;
  std::atomic<bool> is_common = false;
  std::recursive_mutex turn;      // of runs with states, and of what reads and writes these
  std::mutex mutex;               // of what follows, but for the states themselves
  std::vector<void*> by_backend;  // or NULL
  std::map<std::string, State, std::less<>> by_name;
  Compiled* latest = nullptr;  // of a common one
  RunMemory memory;            // has a lock of its own
};

// Where a value lives during a run.
struct Slot {
  std::string name;
  int space = kCpuSpace;
  uint32_t dtype = TN_DTYPE_NONE;
  bool is_static = false;     // the shape is known at compile time
  std::vector<int64_t> dims;  // then: shape, and strides behind it
  uint64_t bytes = 0;
  int64_t offset = -1;      // in the arena of its space; -1: input, constant, output, dynamic
  int64_t input = -1;       // a graph input
  int64_t output = -1;      // the caller's memory for this output
  int64_t state = -1;       // a state that the host keeps
  int64_t next_state = -1;  // written into the second buffer of this state
  Ref<tn_tensor> constant;
  size_t first_step = 0, last_step = 0;

  // Nobody else's memory: of known size, made and read by steps on the CPU.
  bool is_intermediate() const {
    return space == kCpuSpace && is_static && !constant && input < 0 && output < 0 && state < 0 &&
           next_state < 0;
  }
};

enum class StepKind { kPartition, kControl, kLate, kCopy };

struct Step {
  StepKind kind = StepKind::kPartition;
  int backend = -1;  // of kPartition and kCopy
  Exe exe;
  uint64_t workspace = 0;
  std::vector<int> in, out;        // slots; -1: absent optional input (of kControl only)
  std::vector<std::string> names;  // of the nodes
  std::string label;               // for traces
  bool has_state = false;          // the backend keeps state for it
  // kControl: bodies by attribute; kLate: the plan of the nodes, which compiles for each run's
  // sizes
  tn_node_id node = 0;
  const tn_op* row = nullptr;
  std::vector<std::pair<std::string, Ref<tn_plan>>> bodies;
};

struct Fallback {
  std::string node, op, why;
};

// What a plan is compiled under, revised by runs that failed.
struct Assumptions {
  bool trusts_declared = true;     // sizes that only a declaration states hold
  bool opens_sizes = true;         // sizes inside that have not changed so far will not
  bool warned_of_outputs = false;  // declared otherwise than they are computed
  Lost lost;                       // at run time
};

// By input: element type, then sizes. Or kAnyShape alone: a packed list, of any length.
using Shapes = std::vector<std::vector<int64_t>>;
inline constexpr int64_t kAnyShape = -1;
inline constexpr int64_t kOpenSize = -1;  // in place of a size: any

// What a run has queued on one device. Partitions and copies have a stream each, so that a copy
// goes on beside the partitions that have nothing to do with it; events say who waits for whom.
struct DeviceQueues {
  enum Kind { kParts, kCopies };
  void* streams[2] = {};
  bool dirty[2] = {};         // work in flight that the CPU has not waited for
  bool unmarked[2] = {};      // no event stands behind the last of it
  std::vector<void*> events;  // behind each piece of work, oldest first
};

// One run in flight.
struct RunContext {
  explicit RunContext(Compiled* compiled);
  ~RunContext();
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;
  Status prepare();  // allocates what it keeps between runs; once
  Status begin();    // takes its memory, until end()
  void end();

  // What a call gets that reads these slots; `done` is for the event behind it.
  tn_exec exec_on(int backend, DeviceQueues::Kind kind, const std::vector<int>& reads, void** done);
  // After the call, whether or not it succeeded.
  void queued(int backend, DeviceQueues::Kind kind, const std::vector<int>& writes, void* done);
  bool is_busy(int backend) const;
  // The CPU waits for all devices; the first asynchronous failure is the run's.
  Status wait_all();

  Compiled* compiled;
  std::vector<DLTensor> tensors;                   // by slot
  std::vector<std::vector<int64_t>> dynamic_dims;  // by slot, for shapes known late
  std::vector<void*> owned;                        // by slot: dynamic or device memory
  std::vector<uint64_t> owned_bytes;
  std::vector<const DLTensor*> arguments;
  std::vector<char> asked;           // by output of the step that runs; set by any thread
  const Step* at = nullptr;          // that runs, or failed
  std::vector<DeviceQueues> queues;  // by backend
  struct Ready {
    void* event = nullptr;  // NULL: it is there
    DeviceQueues::Kind kind = DeviceQueues::kParts;
  };
  std::vector<Ready> ready;   // by slot
  std::vector<void*> waited;  // of the call in hand
  RunMemory::Block memory;    // the arena, and the workspace behind it
  char* arena = nullptr;      // where the tensors lie; stays when the memory is given back
  char* workspace = nullptr;
};

struct Compiled {
  tn_plan* plan = nullptr;
  Ref<tn_graph> graph;  // bound and prepared; without constants, once it is compiled
  Shapes key;
  bool is_open = false;  // of any sizes where the key says so (open_sizes.hpp)
  Shapes met;            // then: last, and how many times in a row; under the plan's lock
  uint32_t times_met = 0;
  std::vector<Slot> slots;
  std::vector<Step> steps;
  std::vector<int> outputs;        // slot of each graph output
  std::vector<int> state_results;  // slot of each state's new value; -1: a backend keeps it
  std::vector<int> state_keepers;  // place of each state between runs
  std::vector<Fallback> fallbacks;
  Assumptions compiled_under;      // as they were when this was begun
  bool rests_on_declared = false;  // on sizes that only a declaration says
  uint64_t arena_bytes = 0, workspace_bytes = 0, copies = 0;
  std::mutex mutex;
  std::vector<std::unique_ptr<RunContext>> idle;

  ~Compiled();
};

// Sizes and then the row-major strides, as a slot keeps them.
std::vector<int64_t> dense_layout(std::span<const int64_t> dims);
// Memory of its own for a slot, in place of what it had.
Status reserve(RunContext& context, int slot, uint64_t bytes);

// Dense tensors, on the CPU or on a device of the plan.
using Inputs = std::span<const DLTensor* const>;

struct RunRequest {
  Inputs in;
  const tn_outputs* outputs;
  const tn_cancel* cancel = nullptr;
  nlohmann::json* profile = nullptr;  // times of steps are appended
};

Shapes shapes_of(Inputs in);
// Takes the plan's lock for a moment only.
Result<CompiledRef> compile_for(tn_plan* plan, Inputs in, bool may_open);
// *at: the step that failed, or NULL.
Status run_compiled(Compiled& compiled, const RunRequest& request, const Step** at);
Result<Ref<tn_plan>> make_plan(tn_ctx* ctx,
                               const tn_graph* graph,
                               std::span<const tn_value_id> taps,
                               std::string_view options);
Status run_plan(tn_plan* plan, const RunRequest& request);
const tn_host_eval* eval_service();

// state.cpp
// Finds or makes the states of its graph in what it keeps.
Status make_states(tn_plan* plan);
// Moves each state to where this specialization keeps it.
Status move_states(tn_plan* plan, const Compiled& compiled);
tn_status* state_set(tn_plan* plan, tn_str name, const DLTensor* value);
tn_status* state_get(tn_plan* plan, tn_str name, DLTensor* out);

}  // namespace tenon::host

struct tn_plan : tenon::host::Handle<tn_plan> {
  std::atomic<int64_t> refs{1};
  tn_ctx* ctx = nullptr;
  tenon::host::Ref<tn_graph> graph;  // a clone, with the taps as further outputs
  std::string label;                 // for traces: the first output
  std::string options_text;          // for bodies, which are plans of their own
  size_t cache_limit = 0;
  std::vector<std::unique_ptr<tenon::host::BackendUse>> backends;
  // Whether specializations may share one graph on which passes ran before shapes were known.
  bool shares_passes = false;
  std::optional<tenon::host::SizeSymbols> symbols;  // then
  bool is_body = false;    // of a control-flow node: sizes that its inputs state may not hold
  bool has_bound = false;  // a first compile has begun; under `mutex`
  std::mutex preparing;    // of `prepared`
  tenon::host::Ref<tn_graph> prepared;
  // Of the cache and the assumptions. It is not held while a specialization is compiled, so that
  // runs of known shapes never wait.
  std::mutex mutex;
  tenon::host::Assumptions assumptions;
  std::vector<tenon::host::CompiledRef> cache;  // most recently used first
  std::vector<tenon::host::Shapes> compiling;
  std::vector<tenon::host::Shapes> never_open;  // sizes to open that did not pay
  std::condition_variable compiled;             // `compiling` has become shorter
  std::shared_ptr<tenon::host::States> kept;    // in common with plans beside this one
  std::vector<tenon::host::State*> states;      // those of its graph, in order

  // The backend that is preferred: the first one that did not join for an option.
  const tenon::host::BackendUse& preferred() const;
  // The index of the backend whose tensors lie there; nothing: none of the plan.
  std::optional<int> backend_at(DLDevice device) const;
  tenon::host::TraceHub& trace() const { return *ctx->session->trace; }
  ~tn_plan();
  void retain() { refs.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};
