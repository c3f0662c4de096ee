// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPUs as this process has them: memory, streams, events, copies. One Device per GPU, made when
// first asked for and kept until the process ends.

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tenon/sdk/tensor.hpp"

#include "block_cache.hpp"
#include "check.hpp"
#include "device_list.hpp"

namespace tenon::cuda {

DeviceList find_devices();
// Refuses a stream that its owner captures.
Result<int> device_of_stream(cudaStream_t stream, Health& health);

struct Event {
  cudaEvent_t raw = nullptr;
  class Device* device = nullptr;
};

class Device {
 public:
  static Result<Device*> get(int id);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  Health& health() { return health_; }
  // All calls of the runtime are about this device from here on, in this thread.
  Status select();

  // In stream order; stream NULL: nobody uses the memory yet, or any more.
  Result<void*> allocate(uint64_t bytes, cudaStream_t stream, std::string_view what);
  void free(void* block, cudaStream_t stream);
  BlockCounts counts() const { return memory_->counts(); }

  Result<cudaStream_t> new_stream();
  void free_stream(cudaStream_t stream);
  // Streams that others made serve as well: this refuses one of another device, and one that its
  // owner captures.
  Status check_stream(cudaStream_t stream);
  Result<Event*> record(cudaStream_t stream);
  Status wait(cudaStream_t stream, const Event& event);
  // TN_UNAVAILABLE: it has not fired within the time. Then what a kernel complained of, if any.
  Status synchronize(const Event& event, uint64_t timeout_ns);
  void free_event(Event* event);

  // Between the CPU and this device, or within it. Pieces up to a few MiB go through pinned memory,
  // so that the copy is asynchronous whatever memory the caller has.
  Status copy(const void* from,
              bool from_device,
              void* to,
              bool to_device,
              uint64_t bytes,
              cudaStream_t stream);

  // A word that kernels write when they meet bad input; what each number means.
  unsigned* fault_word() { return fault_; }
  // How much is to be added to the numbers 1 to n of these meanings.
  unsigned add_faults(const std::vector<std::string>& meanings);
  Status fault_status();

 private:
  explicit Device(DeviceInfo info);
  Status prepare();
  bool is_own(cudaStream_t stream);

  DeviceInfo info_;
  Health health_;
  std::unique_ptr<BlockSource> memory_source_, pinned_source_;
  std::unique_ptr<BlockCache> memory_, pinned_;
  std::mutex streams_mutex_;
  std::set<cudaStream_t> streams_;  // those made here
  unsigned* fault_ = nullptr;       // pinned: the CPU reads it without a copy
  std::mutex faults_mutex_;
  std::vector<std::string> faults_;
};

}  // namespace tenon::cuda
