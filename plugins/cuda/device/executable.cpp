// SPDX-License-Identifier: Apache-2.0
#include "executable.hpp"

#include <algorithm>
#include <cstring>

#include "tenon/sdk/backend/inputs.hpp"

namespace tenon::cuda {
namespace {

constexpr size_t kReplays = 4;
constexpr size_t kArgumentBytes = 4096;  // what a kernel's parameters may be

// The plan's number of a fault becomes the device's.
void shift_fault(Launch* work, unsigned by) {
  if (work->fault_at < 0) return;
  unsigned number = 0;
  std::memcpy(&number, work->arguments.data() + work->fault_at, sizeof number);
  number += by;
  std::memcpy(work->arguments.data() + work->fault_at, &number, sizeof number);
}

// Events that take the time.
class Marks {
 public:
  explicit Marks(size_t count) : events_(count, nullptr) {
    for (cudaEvent_t& event : events_)
      if (made_ == cudaSuccess) made_ = cudaEventCreate(&event);
  }
  ~Marks() {
    for (cudaEvent_t event : events_)
      if (event) cudaEventDestroy(event);
  }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;
  cudaError_t made() const { return made_; }
  cudaEvent_t operator[](size_t i) const { return events_[i]; }

 private:
  std::vector<cudaEvent_t> events_;
  cudaError_t made_ = cudaSuccess;
};

}  // namespace

Result<std::unique_ptr<Executable>> Executable::make(Device& device,
                                                     Plan plan,
                                                     const Tools& tools,
                                                     const ExecutableOptions& options) {
  std::unique_ptr<Executable> made(new Executable(device, std::move(plan), options));
  TN_CHECK(made->prepare(tools));
  return made;
}

Executable::~Executable() {
  if (!device_.select().ok()) return;
  for (Replay& replay : replays_)
    drop(replay);
}

// Waits for this graph alone: waiting for the device would break captures of other threads.
void Executable::drop(Replay& replay) {
  if (replay.last) {
    cudaEventSynchronize(replay.last);
    cudaEventDestroy(replay.last);
  }
  if (!replay.graph) return;
  cudaGraphExecDestroy(replay.graph);
  device_.free(replay.arena, nullptr);
}

Status Executable::prepare(const Tools& tools) {
  TN_CHECK(device_.select());
  unsigned faults = device_.add_faults(plan_.faults);
  for (const Constant& constant : plan_.constants) {
    TN_TRY(block, tools.weights->get(device_, constant));
    weights_.push_back(block);
  }
  for (Step& step : plan_.steps) {
    Prepared prepared;
    if (Launch* work = std::get_if<Launch>(&step.work)) shift_fault(work, faults);
    TN_CHECK(prepare_step(step, tools, &prepared).in(cat("node ", step.name)));
    prepared_.push_back(std::move(prepared));
  }
  return {};
}

Status Executable::prepare_step(const Step& step, const Tools& tools, Prepared* out) {
  if (const Launch* work = std::get_if<Launch>(&step.work)) {
    if (work->arguments.size() > kArgumentBytes) return unsupported("cuda: too many arguments");
    TN_TRY(kernel, tools.kernels->get(*work));
    out->kernel = kernel;
  } else if (const Product* product = std::get_if<Product>(&step.work)) {
    TN_TRY(made, tools.products->prepare(*product, options_.tf32, alignment_of(*product)));
    out->product = std::move(made);
    scratch_bytes_ = std::max(scratch_bytes_, kProductWorkspace);
  } else if (const Convolution* convolution = std::get_if<Convolution>(&step.work)) {
    TN_TRY(made, tools.convolutions->prepare(*convolution, options_.tf32));
    out->convolution = std::move(made);
    scratch_bytes_ = std::max(scratch_bytes_, out->convolution->workspace_bytes());
  }
  return {};
}

ProductAlignment Executable::alignment_of(const Product& product) const {
  auto of = [&](int buffer) -> uint32_t {
    if (buffer < 0) return kOwnAlign;
    Storage storage = plan_.buffers[static_cast<size_t>(buffer)].storage;
    return storage == Storage::kInput || storage == Storage::kOutput ? kBoundaryAlign : kOwnAlign;
  };
  uint32_t out = of(product.out);
  return {of(product.a), of(product.b), of(product.bias), product.c < 0 ? out : of(product.c), out};
}

Status Executable::check_memory(const DLTensor& given,
                                const Signature& wanted,
                                std::string_view what) const {
  if (given.device.device_type != kDLCUDA || given.device.device_id != device_.info().id) {
    return invalid(cat("cuda: ", what, " ", wanted.name, ": expected memory of device ",
                       device_.info().id, ", got device type ", given.device.device_type, " id ",
                       given.device.device_id));
  }
  const DenseView compiled(wanted.dtype, wanted.dims);
  if (const char* why = backend::why_not_as_compiled(given, *compiled))
    return invalid(cat("cuda: ", what, " ", wanted.name, ": ", why));
  if (reinterpret_cast<uintptr_t>(data_of<void>(given)) % kBoundaryAlign != 0) {
    return invalid(cat("cuda: ", what, " ", wanted.name, ": expected memory aligned to ",
                       kBoundaryAlign, " bytes"));
  }
  return {};
}

// Addresses of inputs, then outputs, then states.
Status Executable::bind(State* state,
                        const DLTensor* const* in,
                        uint64_t n_in,
                        const tn_outputs* outputs,
                        std::vector<void*>* boundary) const {
  if (n_in != plan_.inputs.size()) {
    return invalid(cat("cuda: expected ", plan_.inputs.size(), " inputs, got ", n_in));
  }
  for (size_t i = 0; i < n_in; ++i) {
    TN_CHECK(check_memory(*in[i], plan_.inputs[i], "input"));
    boundary->push_back(data_of<void>(*in[i]));
  }
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    DenseView proto(plan_.outputs[i].dtype, plan_.outputs[i].dims);
    proto.get()->device = {kDLCUDA, device_.info().id};
    DLTensor out{};
    TN_CHECK(outputs->get(outputs->ctx, i, proto.get(), &out));
    TN_CHECK(check_memory(out, plan_.outputs[i], "output"));
    boundary->push_back(data_of<void>(out));
  }
  for (const Signature& one : plan_.states) {
    if (!state) return invalid(cat("cuda: state ", one.name, " was not given"));
    TN_TRY(address, state->address(one.name, bytes_of(one.dtype, element_count(one.dims))));
    boundary->push_back(address);
  }
  return {};
}

void Executable::resolve(const std::vector<void*>& boundary,
                         char* arena,
                         std::vector<void*>* out) const {
  size_t n_in = plan_.inputs.size(), n_out = plan_.outputs.size();
  for (const Buffer& buffer : plan_.buffers) {
    size_t index = static_cast<size_t>(buffer.index);
    void* address = arena + buffer.offset;
    if (buffer.storage == Storage::kInput) address = boundary[index];
    if (buffer.storage == Storage::kOutput) address = boundary[n_in + index];
    if (buffer.storage == Storage::kState) address = boundary[n_in + n_out + index];
    if (buffer.storage == Storage::kConstant) address = weights_[index]->address();
    out->push_back(address);
  }
  out->push_back(arena + plan_.arena_bytes);  // scratch of products and convolutions
}

Status Executable::launch(const Launch& work,
                          cudaKernel_t kernel,
                          const std::vector<void*>& addresses,
                          cudaStream_t stream) {
  alignas(16) unsigned char arguments[kArgumentBytes];
  std::memcpy(arguments, work.arguments.data(), work.arguments.size());
  for (const Patch& patch : work.patches) {
    void* address = device_.fault_word();
    if (patch.buffer != kFaultBuffer) {
      address = static_cast<char*>(addresses[static_cast<size_t>(patch.buffer)]) + patch.offset;
    }
    std::memcpy(arguments + patch.at, &address, sizeof address);
  }
  void* parameters[] = {arguments};
  return device_.health().check(
      cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(work.grid), dim3(work.block),
                       parameters, 0, stream),
      work.symbol);
}

Status Executable::queue_step(size_t i, const std::vector<void*>& addresses, cudaStream_t stream) {
  const Step& step = plan_.steps[i];
  auto at = [&](int buffer) -> void* {
    return buffer < 0 ? nullptr : addresses[static_cast<size_t>(buffer)];
  };
  if (const Launch* work = std::get_if<Launch>(&step.work)) {
    return launch(*work, prepared_[i].kernel, addresses, stream);
  }
  if (const Product* p = std::get_if<Product>(&step.work)) {
    return prepared_[i].product->launch(at(p->a), at(p->b), at(p->bias), at(p->c), at(p->out),
                                        addresses.back(), stream);
  }
  if (const Convolution* c = std::get_if<Convolution>(&step.work)) {
    return prepared_[i].convolution->launch(at(c->x), at(c->w), at(c->bias), at(c->z), at(c->y),
                                            addresses.back(), stream);
  }
  const Move& move = std::get<Move>(step.work);
  return device_.health().check(
      cudaMemcpyAsync(at(move.to), at(move.from), move.bytes, cudaMemcpyDeviceToDevice, stream),
      "a copy");
}

Status Executable::queue(const std::vector<void*>& addresses, cudaStream_t stream) {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    Status status = queue_step(i, addresses, stream);
    if (!status.ok()) return std::move(status).in(cat("node ", plan_.steps[i].name));
  }
  return {};
}

Result<void*> Executable::new_arena(cudaStream_t stream) {
  return device_.allocate(std::max<uint64_t>(arena_bytes(), 1), stream,
                          cat("the arena of a run; its planned peak is ", plan_.arena_lower_bound,
                              " bytes at node ", plan_.peak_step));
}

Status Executable::run_queued(const std::vector<void*>& boundary, cudaStream_t stream, bool timed) {
  TN_TRY(arena, new_arena(stream));
  std::vector<void*> addresses;
  resolve(boundary, static_cast<char*>(arena), &addresses);
  Status status = timed ? profile(addresses, stream) : queue(addresses, stream);
  device_.free(arena, stream);
  return status;
}

// The capture is of a stream of its own, so that nothing else in flight is caught up in it.
Status Executable::capture(Replay& replay, cudaStream_t stream) {
  TN_TRY(recorder, device_.new_stream());
  Result<void*> arena = new_arena(stream);
  if (!arena.ok()) {
    device_.free_stream(recorder);
    return std::move(arena).status();
  }
  std::vector<void*> addresses;
  resolve(replay.key, static_cast<char*>(*arena), &addresses);
  cudaGraph_t graph = nullptr;
  Status status = device_.health().check(
      cudaStreamBeginCapture(recorder, cudaStreamCaptureModeThreadLocal), "a capture");
  if (status.ok()) {
    status = queue(addresses, recorder);
    Status ended = device_.health().check(cudaStreamEndCapture(recorder, &graph), "a capture");
    if (status.ok()) status = std::move(ended);
  }
  if (status.ok()) {
    status = device_.health().check(cudaGraphInstantiate(&replay.graph, graph, 0), "a graph");
  }
  if (graph) cudaGraphDestroy(graph);
  if (status.ok()) {
    status = device_.health().check(cudaEventCreateWithFlags(&replay.last, cudaEventDisableTiming),
                                    "an event");
  }
  device_.free_stream(recorder);
  if (status.ok()) {
    replay.arena = *arena;
    ++captured_;
  } else {
    if (replay.graph) cudaGraphExecDestroy(replay.graph);
    replay.graph = nullptr;
    device_.free(*arena, stream);
  }
  return status;
}

Status Executable::run_replay(const std::vector<void*>& boundary, cudaStream_t stream) {
  std::unique_lock lock(mutex_);
  auto found = std::find_if(replays_.begin(), replays_.end(),
                            [&](const Replay& replay) { return replay.key == boundary; });
  if (found == replays_.end()) {
    if (replays_.size() >= kReplays) {
      drop(replays_.back());
      replays_.pop_back();
    }
    replays_.push_front({boundary, nullptr, nullptr, nullptr});
    lock.unlock();
    return run_queued(boundary, stream, false);
  }
  replays_.splice(replays_.begin(), replays_, found);
  if (!found->graph) {
    Status captured = capture(*found, stream);
    if (!captured.ok()) {  // what cannot be captured is queued, from now on
      replays_on_ = false;
      TN_CHECK(device_.health().usable());
      lock.unlock();
      return run_queued(boundary, stream, false);
    }
  }
  TN_CHECK(device_.health().check(cudaGraphLaunch(found->graph, stream), "a graph"));
  return device_.health().check(cudaEventRecord(found->last, stream), "a graph");
}

Status Executable::profile(const std::vector<void*>& addresses, cudaStream_t stream) {
  Marks marks(plan_.steps.size() + 1);
  TN_CHECK(device_.health().check(marks.made(), "an event"));
  cudaEventRecord(marks[0], stream);
  Status status;
  for (size_t i = 0; i < plan_.steps.size() && status.ok(); ++i) {
    status = queue_step(i, addresses, stream).in(cat("node ", plan_.steps[i].name));
    cudaEventRecord(marks[i + 1], stream);
  }
  Status ended = device_.health().check(cudaStreamSynchronize(stream), "a run");
  TN_CHECK(std::move(status));
  TN_CHECK(std::move(ended));
  std::vector<uint64_t> ns(plan_.steps.size(), 0);
  for (size_t i = 0; i < ns.size(); ++i) {
    float ms = 0;
    cudaEventElapsedTime(&ms, marks[i], marks[i + 1]);
    ns[i] = static_cast<uint64_t>(static_cast<double>(ms) * 1e6);
  }
  std::lock_guard lock(mutex_);
  step_ns_ = std::move(ns);
  return {};
}

std::vector<uint64_t> Executable::step_ns() const {
  std::lock_guard lock(mutex_);
  return step_ns_;
}

// Behind what is on the stream that makes the inputs now; not part of a captured graph.
Status Executable::wait_for_inputs(cudaStream_t stream) {
  TN_CHECK(device_.check_stream(options_.input_stream).in("option input_stream"));
  TN_TRY(ready, device_.record(options_.input_stream));
  Status waits = device_.wait(stream, *ready);
  device_.free_event(ready);
  return waits;
}

Status Executable::run_on(cudaStream_t stream,
                          const std::vector<void*>& boundary,
                          const tn_exec* exec) {
  for (uint64_t i = 0; i < exec->wait_count; ++i)
    TN_CHECK(device_.wait(stream, *static_cast<Event*>(exec->wait_events[i])));
  if (options_.input_stream) TN_CHECK(wait_for_inputs(stream));
  bool timed = exec->flags & TN_EXEC_PROFILE;
  bool replays = replays_on_ && !timed && exec->stream;
  TN_CHECK(replays ? run_replay(boundary, stream) : run_queued(boundary, stream, timed));
  if (!exec->out_done) return {};
  TN_TRY(done, device_.record(stream));
  *exec->out_done = done;
  return {};
}

Status Executable::run(State* state,
                       const DLTensor* const* in,
                       uint64_t n_in,
                       const tn_outputs* outputs,
                       const tn_exec* exec) {
  TN_CHECK(device_.select());
  if (exec->flags & TN_EXEC_CAPTURE) {
    return {TN_FAILED_PRECONDITION,
            "cuda: a run takes memory from the allocator, so its caller cannot capture it; "
            "the backend captures it by itself (option graphs)"};
  }
  auto stream = static_cast<cudaStream_t>(exec->stream);
  if (stream) TN_CHECK(device_.check_stream(stream));
  std::vector<void*> boundary;
  TN_CHECK(bind(state, in, n_in, outputs, &boundary));
  if (!stream) {
    TN_TRY(made, device_.new_stream());
    stream = made;
  }
  Status status = run_on(stream, boundary, exec);
  // The caller gets its memory back now: after a failure too, nothing may still write to it.
  if (!exec->stream || !status.ok()) {
    Status ended = device_.health().check(cudaStreamSynchronize(stream), "a run");
    if (status.ok()) status = ended.ok() ? device_.fault_status() : std::move(ended);
  }
  if (!exec->stream) device_.free_stream(stream);
  return status;
}

}  // namespace tenon::cuda
