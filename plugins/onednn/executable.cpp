// SPDX-License-Identifier: Apache-2.0
#include "executable.hpp"

#include <chrono>

#include "cpu.hpp"
#include "loop.hpp"
#include "lowering/concat_elision.hpp"
#include "lowering/join_steps.hpp"
#include "team/openmp.hpp"
#include "team/team.hpp"
#include "team_pool.hpp"

namespace tenon::onednn {

struct Executable::Call {
  const Step* step = nullptr;
  bool ids_meet = false;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
  std::vector<void*> pointers;
  std::vector<void*> loop_pointers;
};

struct Executable::Slot {
  dnnl::stream stream;
  std::vector<Call> calls;
  // Where addresses that differ between runs go: only these are written before a run.
  struct Patch {
    Buffer::Kind kind;
    int64_t index;
    int64_t offset;
    dnnl_memory_t memory;  // or:
    void** pointer;
  };
  std::vector<Patch> arena_patches;
  std::vector<Patch> io_patches;
  const void* workspace = nullptr;  // what arena_patches hold
  Slot* next = nullptr;
};

namespace {

// Of anything but a constant; index: of the input, output or state.
char* base_of(Buffer::Kind kind, int64_t index, const RunRequest& request) {
  const auto i = static_cast<size_t>(index);
  if (kind == Buffer::Kind::kInput) return static_cast<char*>(const_cast<void*>(request.inputs[i]));
  if (kind == Buffer::Kind::kOutput) return static_cast<char*>(request.outputs[i]);
  if (kind == Buffer::Kind::kState) return static_cast<char*>(request.states[i]);
  return static_cast<char*>(request.workspace);
}

char* constant_at(const Buffer& buffer, int64_t offset) {
  return static_cast<char*>(const_cast<void*>(buffer.data)) + offset;
}

// Whether threads of a primitive wait for each other in a loop of oneDNN's own (its
// simple_barrier): so do those that sum over a batch. In all others they meet at OpenMP's barrier
// or not at all.
bool ids_meet(const dnnl::primitive& primitive) {
  switch (primitive.get_kind()) {
    case dnnl::primitive::kind::reorder:
    case dnnl::primitive::kind::concat:
    case dnnl::primitive::kind::sum:
    case dnnl::primitive::kind::eltwise:
    case dnnl::primitive::kind::binary:
    case dnnl::primitive::kind::pooling:
    case dnnl::primitive::kind::softmax:
    case dnnl::primitive::kind::lrn:
    case dnnl::primitive::kind::matmul:
    case dnnl::primitive::kind::resampling:
    case dnnl::primitive::kind::reduction:
      return false;
    case dnnl::primitive::kind::convolution:
    case dnnl::primitive::kind::deconvolution:
    case dnnl::primitive::kind::inner_product: {
      dnnl_prop_kind_t direction = dnnl_prop_kind_undef;
      dnnl_primitive_desc_query(primitive.get_primitive_desc(), dnnl_query_prop_kind, 0,
                                &direction);
      return direction != dnnl_forward_training && direction != dnnl_forward_inference &&
             direction != dnnl_backward_data;
    }
    default:
      return true;
  }
}

// All states of a run change, or none: from the first that does, nothing may fail.
bool commits_wholly(const Plan& plan) {
  for (size_t i = plan.first_commit; i < plan.steps.size(); ++i)
    if (!plan.steps[i].primitive && !plan.steps[i].always_succeeds) return false;
  return true;
}

}  // namespace

Executable::Executable(const Graph& graph, const CompileOptions& options, WeightStore& store)
    : threads_(std::max(1, options.threads)), engine_(store.engine()), level_(best_level()) {
  if (const std::string& why = team::why_not_on_team(); !why.empty()) throw CompileError(why);
  team::Hold team(threads_);  // oneDNN cuts the work of a primitive when it is made
  plan_ = Lowering(graph, options, store).run();
  if (!commits_wholly(plan_)) {
    CompileOptions at_the_end = options;
    at_the_end.replaces_states = false;
    plan_ = Lowering(graph, at_the_end, store).run();
  }
  elide_concats(plan_);
  join_steps(plan_);
  if (options.n_captured > 0) hoist_invariants(plan_, options.n_captured);
  finish();
}

Executable::Executable(Plan plan, int threads, dnnl::engine engine)
    : plan_(std::move(plan)), threads_(threads), engine_(std::move(engine)), level_(best_level()) {
  finish();
}

void Executable::finish() {
  arena_ = lay_out_arena(plan_);
  for (const Step& step : plan_.steps)
    has_primitives_ = has_primitives_ || static_cast<bool>(step.primitive);
}

Executable::~Executable() = default;

Executable::Slot* Executable::acquire() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_ != nullptr) {
      Slot* slot = free_;
      free_ = slot->next;
      return slot;
    }
  }
  auto slot = std::make_unique<Slot>();
  slot->stream = dnnl::stream(engine_);
  slot->calls.resize(plan_.steps.size());
  auto patch = [&](const Place& place, dnnl_memory_t memory, void** pointer) {
    const Buffer& buffer = plan_.buffers[place.buffer];
    if (buffer.kind == Buffer::Kind::kConstant) return;
    const bool is_arena = buffer.kind == Buffer::Kind::kArena;
    auto& list = is_arena ? slot->arena_patches : slot->io_patches;
    const int64_t offset = place.offset + (is_arena ? buffer.arena_offset : 0);
    list.push_back({buffer.kind, buffer.index, offset, memory, pointer});
  };
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    Call& call = slot->calls[i];
    call.step = &step;
    call.ids_meet = step.primitive && ids_meet(step.primitive);
    for (const Argument& argument : step.arguments) {
      const Buffer& buffer = plan_.buffers[argument.place.buffer];
      const bool is_constant = buffer.kind == Buffer::Kind::kConstant;
      void* data = is_constant ? constant_at(buffer, argument.place.offset) : DNNL_MEMORY_NONE;
      call.memories.emplace_back(argument.desc, engine_, data);
      call.arguments.push_back({argument.id, call.memories.back().get()});
      patch(argument.place, call.memories.back().get(), nullptr);
    }
    call.pointers.resize(step.places.size());
    if (step.loop) call.loop_pointers.resize(step.loop->n_pointers());
    for (size_t k = 0; k < step.places.size(); ++k) {
      const Place& place = step.places[k];
      if (place.buffer == kNone) continue;  // an absent input or output stays nullptr
      const Buffer& buffer = plan_.buffers[place.buffer];
      if (buffer.kind == Buffer::Kind::kConstant)
        call.pointers[k] = constant_at(buffer, place.offset);
      patch(place, nullptr, &call.pointers[k]);
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  slots_.push_back(std::move(slot));
  return slots_.back().get();
}

void Executable::release(Slot* slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  slot->next = free_;
  free_ = slot;
}

void Executable::fill(Slot& slot, const RunRequest& request) const {
  auto apply = [&](const std::vector<Slot::Patch>& patches) {
    for (const Slot::Patch& patch : patches) {
      char* address = base_of(patch.kind, patch.index, request) + patch.offset;
      if (patch.pointer != nullptr)
        *patch.pointer = address;
      else
        dnnl_memory_set_data_handle(patch.memory, address);
    }
  };
  if (slot.workspace != request.workspace || request.workspace == nullptr) {
    apply(slot.arena_patches);
    slot.workspace = request.workspace;
  }
  apply(slot.io_patches);
}

namespace {

class StepSpan {
 public:
  StepSpan(const RunRequest& request, const std::string& name) : request_(request) {
    if (request_.span != nullptr) request_.span(request_.traced, &name);
  }
  ~StepSpan() {
    if (request_.span != nullptr) request_.span(request_.traced, nullptr);
  }
  StepSpan(const StepSpan&) = delete;
  StepSpan& operator=(const StepSpan&) = delete;

 private:
  const RunRequest& request_;
};

}  // namespace

const char* Executable::execute(Slot& slot,
                                team::Hold& team,
                                const RunRequest& request,
                                const Step** where) const {
  using Clock = std::chrono::steady_clock;
  kernels::Parallel parallel = request.parallel;
  if (parallel.run == nullptr && threads_ > 1) parallel = team_pool(&threads_);
  kernels::Context context = kernels::make_context(level_, parallel);
  for (size_t i = request.repeats ? plan_.n_prologue : 0; i < slot.calls.size(); ++i) {
    Call& call = slot.calls[i];
    if (where != nullptr) *where = call.step;
    bool may_stop = request.is_cancelled != nullptr && i < plan_.first_commit;
    if (may_stop && request.is_cancelled(request.cancel)) return kCancelled;
    Clock::time_point begin = request.step_ns == nullptr ? Clock::time_point() : Clock::now();
    StepSpan span(request, call.step->name);
    team.set_ids_meet(call.ids_meet);
    if (call.step->loop) {
      RunRequest within = request;
      if (!may_stop) within.is_cancelled = nullptr;
      const char* error = run_loop(*call.step->loop, call.pointers.data(),
                                   call.loop_pointers.data(), within, where);
      if (error != nullptr) return error;
    } else if (call.step->kernel_function) {
      const char* error = call.step->kernel_function(context, call.pointers.data());
      if (error != nullptr) return error;
    } else {
      dnnl_status_t status =
          dnnl_primitive_execute(call.step->primitive.get(), slot.stream.get(),
                                 static_cast<int>(call.arguments.size()), call.arguments.data());
      if (status != dnnl_success) return "a oneDNN primitive failed";
    }
    if (request.step_ns != nullptr) {
      (*request.step_ns)[i] = static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
    }
  }
  return nullptr;
}

Executable::Sequence::Sequence(Executable& executable)
    : executable_(executable), team_(executable.threads_), slot_(executable.acquire()) {}

Executable::Sequence::~Sequence() {
  executable_.release(slot_);
}

const char* Executable::Sequence::run(const RunRequest& request, const Step** where) {
  if (executable_.has_primitives_ && !team_.has_all_threads()) {
    if (where != nullptr) *where = executable_.plan_.steps.data();
    return "the system gives no more threads";
  }
  executable_.fill(*slot_, request);
  return executable_.execute(*slot_, team_, request, where);
}

const char* Executable::run(const RunRequest& request, const Step** where) {
  return Sequence(*this).run(request, where);
}

}  // namespace tenon::onednn
