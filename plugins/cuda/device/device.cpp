// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <chrono>
#include <cstring>
#include <map>
#include <thread>

namespace tenon::cuda {
namespace {

constexpr uint64_t kStagedBytes = uint64_t{4} << 20;

std::string why_none(cudaError_t error) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  bool is_silent = error == cudaErrorNoDevice || error == cudaSuccess;
  std::string answer =
      is_silent ? "" : cat(cudaGetErrorName(error), ": ", cudaGetErrorString(error));
  return why_no_devices(driver, CUDART_VERSION / 1000 * 1000, answer);
}

// Fences are events; the stream of a block is where its last use was queued.
class CudaFences : public BlockSource {
 public:
  void* fence(void* stream) override {
    auto of = static_cast<cudaStream_t>(stream);
    cudaEvent_t event = nullptr;
    bool is_made = cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess;
    if (is_made && cudaEventRecord(event, of) == cudaSuccess) return event;
    if (is_made) cudaEventDestroy(event);
    cudaStreamSynchronize(of);  // nothing marks the point, so it has to be past
    cudaGetLastError();
    return nullptr;
  }
  bool is_done(void* fence) override {
    return cudaEventQuery(static_cast<cudaEvent_t>(fence)) != cudaErrorNotReady;
  }
  void wait(void* fence) override { cudaEventSynchronize(static_cast<cudaEvent_t>(fence)); }
  void drop(void* fence) override { cudaEventDestroy(static_cast<cudaEvent_t>(fence)); }
};

class DeviceMemory : public CudaFences {
 public:
  void* allocate(uint64_t bytes) override {
    void* block = nullptr;
    if (cudaMalloc(&block, bytes) == cudaSuccess) return block;
    cudaGetLastError();
    return nullptr;
  }
  void release(void* block) override { cudaFree(block); }
};

class PinnedMemory : public CudaFences {
 public:
  void* allocate(uint64_t bytes) override {
    void* block = nullptr;
    if (cudaHostAlloc(&block, bytes, cudaHostAllocDefault) == cudaSuccess) return block;
    cudaGetLastError();
    return nullptr;
  }
  void release(void* block) override { cudaFreeHost(block); }
};

struct LateCopy {
  void* to;
  const void* from;
  uint64_t bytes;
};

void CUDART_CB finish_copy(void* raw) {
  auto* copy = static_cast<LateCopy*>(raw);
  std::memcpy(copy->to, copy->from, copy->bytes);
  delete copy;
}

}  // namespace

DeviceList find_devices() {
  DeviceList out;
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) cudaGetLastError();
  if (error != cudaSuccess || count == 0) {
    out.why_none = why_none(error);
    return out;
  }
  cudaError_t silent = cudaSuccess;  // what one answers that does not describe itself
  for (int id = 0; id < count; ++id) {
    cudaDeviceProp properties{};
    error = cudaGetDeviceProperties(&properties, id);
    if (error != cudaSuccess) {
      cudaGetLastError();
      silent = error;
      continue;
    }
    DeviceInfo info;
    info.id = id;
    info.name = properties.name;
    info.memory_bytes = properties.totalGlobalMem;
    info.architecture = properties.major * 10 + properties.minor;
    out.devices.push_back(std::move(info));
  }
  if (out.devices.empty()) out.why_none = why_none(silent);
  return out;
}

// A stream that is being captured says whether it is and nothing else: any other question ends the
// capture.
Result<int> device_of_stream(cudaStream_t stream, Health& health) {
  constexpr const char* kDoing = "a stream that was given";
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  TN_CHECK(health.check(cudaStreamIsCapturing(stream, &state), kDoing));
  if (state != cudaStreamCaptureStatusNone) {
    return Status(TN_FAILED_PRECONDITION,
                  "cuda: the stream that was given is being captured: expected one that runs");
  }
  int id = -1;
  TN_CHECK(health.check(cudaStreamGetDevice(stream, &id), kDoing));
  return id;
}

Result<Device*> Device::get(int id) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<Device>> devices;
  std::lock_guard lock(mutex);
  if (auto found = devices.find(id); found != devices.end()) return found->second.get();
  TN_TRY(info, device_of(find_devices(), id));
  std::unique_ptr<Device> made(new Device(std::move(info)));
  TN_CHECK(made->prepare());
  return (devices[id] = std::move(made)).get();
}

Device::Device(DeviceInfo info)
    : info_(std::move(info)),
      memory_source_(std::make_unique<DeviceMemory>()),
      pinned_source_(std::make_unique<PinnedMemory>()),
      memory_(std::make_unique<BlockCache>(*memory_source_)),
      pinned_(std::make_unique<BlockCache>(*pinned_source_)) {}

Device::~Device() {
  cudaSetDevice(info_.id);
  if (fault_) cudaFreeHost(fault_);
}

Status Device::prepare() {
  TN_CHECK(select());
  void* word = nullptr;
  TN_CHECK(health_.check(cudaHostAlloc(&word, sizeof(unsigned), cudaHostAllocMapped),
                         "pinned memory for faults"));
  fault_ = static_cast<unsigned*>(word);
  *fault_ = 0;
  return {};
}

Status Device::select() {
  TN_CHECK(health_.usable());
  return health_.check(cudaSetDevice(info_.id), cat("choosing device ", info_.id));
}

Result<void*> Device::allocate(uint64_t bytes, cudaStream_t stream, std::string_view what) {
  TN_CHECK(select());
  if (void* block = memory_->allocate(bytes, stream)) return block;
  size_t left = 0, all = 0;
  cudaMemGetInfo(&left, &all);
  BlockCounts now = counts();
  return Status(TN_RESOURCE_EXHAUSTED,
                cat("cuda: out of device memory: ", bytes, " bytes for ", what, "; ", left, " of ",
                    all, " bytes are free, ", now.live_bytes, " are in use here"));
}

Result<cudaStream_t> Device::new_stream() {
  TN_CHECK(select());
  cudaStream_t stream = nullptr;
  TN_CHECK(
      health_.check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a new stream"));
  std::lock_guard lock(streams_mutex_);
  streams_.insert(stream);
  return stream;
}

bool Device::is_own(cudaStream_t stream) {
  std::lock_guard lock(streams_mutex_);
  return streams_.contains(stream);
}

Status Device::check_stream(cudaStream_t stream) {
  TN_CHECK(select());
  if (is_own(stream)) return {};
  TN_TRY(id, device_of_stream(stream, health_));
  if (id == info_.id) return {};
  return invalid(cat("cuda: expected a stream of device ", info_.id, ", got one of device ", id));
}

void Device::free(void* block, cudaStream_t stream) {
  memory_->free(block, stream, is_own(stream) ? Reuse::kByStream : Reuse::kWhenDone);
}

void Device::free_stream(cudaStream_t stream) {
  {
    std::lock_guard lock(streams_mutex_);
    streams_.erase(stream);
  }
  if (!select().ok()) return;
  // Cached blocks of this stream hold events, which outlive it.
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
}

Result<Event*> Device::record(cudaStream_t stream) {
  TN_CHECK(select());
  auto event = std::make_unique<Event>();
  event->device = this;
  TN_CHECK(
      health_.check(cudaEventCreateWithFlags(&event->raw, cudaEventDisableTiming), "an event"));
  Status recorded = health_.check(cudaEventRecord(event->raw, stream), "recording an event");
  if (recorded.ok()) return event.release();
  cudaEventDestroy(event->raw);
  return recorded;
}

Status Device::wait(cudaStream_t stream, const Event& event) {
  TN_CHECK(select());
  return health_.check(cudaStreamWaitEvent(stream, event.raw, 0), "waiting for an event");
}

Status Device::synchronize(const Event& event, uint64_t timeout_ns) {
  TN_CHECK(select());
  if (timeout_ns == UINT64_MAX) {
    TN_CHECK(health_.check(cudaEventSynchronize(event.raw), "a run"));
    return fault_status();
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    cudaError_t state = cudaEventQuery(event.raw);
    if (state != cudaErrorNotReady) {
      TN_CHECK(health_.check(state, "a run"));
      return fault_status();
    }
    cudaGetLastError();
    std::chrono::nanoseconds waited = Clock::now() - begin;
    if (static_cast<uint64_t>(waited.count()) >= timeout_ns) {
      return {TN_UNAVAILABLE, "cuda: the event has not fired within the time"};
    }
    std::this_thread::yield();
  }
}

void Device::free_event(Event* event) {
  cudaEventDestroy(event->raw);
  delete event;
}

Status Device::copy(const void* from,
                    bool from_device,
                    void* to,
                    bool to_device,
                    uint64_t bytes,
                    cudaStream_t stream) {
  TN_CHECK(select());
  if (bytes == 0) return {};
  void* staged = from_device != to_device && bytes <= kStagedBytes
                     ? pinned_->allocate(bytes, stream)
                     : nullptr;
  if (!staged) {
    return health_.check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "a copy");
  }
  cudaError_t error = cudaSuccess;
  if (to_device) {
    std::memcpy(staged, from, bytes);
    error = cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, stream);
  } else {
    error = cudaMemcpyAsync(staged, from, bytes, cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess) {
      auto* late = new LateCopy{to, staged, bytes};
      error = cudaLaunchHostFunc(stream, finish_copy, late);
      if (error != cudaSuccess) delete late;
    }
  }
  // The CPU writes into it without waiting for the stream, so that has to be done first.
  pinned_->free(staged, stream, Reuse::kWhenDone);
  return health_.check(error, "a copy");
}

unsigned Device::add_faults(const std::vector<std::string>& meanings) {
  std::lock_guard lock(faults_mutex_);
  unsigned before = static_cast<unsigned>(faults_.size());
  faults_.insert(faults_.end(), meanings.begin(), meanings.end());
  return before;
}

Status Device::fault_status() {
  unsigned number = std::atomic_ref<unsigned>(*fault_).exchange(0);
  if (number == 0) return {};
  std::lock_guard lock(faults_mutex_);
  std::string meaning = number <= faults_.size() ? faults_[number - 1] : "unknown fault";
  return {TN_INVALID_ARGUMENT, cat("cuda: ", meaning)};
}

}  // namespace tenon::cuda
