// SPDX-License-Identifier: Apache-2.0
#pragma once
// A plan on a device. A run queues its steps on a stream; the second run with the same addresses is
// captured as a CUDA graph, and later ones launch that.

#include <atomic>
#include <list>
#include <memory>

#include "tenon/exec.h"

#include "convolutions.hpp"
#include "module.hpp"
#include "products.hpp"
#include "state.hpp"

namespace tenon::cuda {

struct Tools {  // of one component, shared by its executables
  Kernels* kernels;
  Products* products;          // NULL: the plan has none
  Convolutions* convolutions;  // likewise
  Weights* weights;
};

struct ExecutableOptions {
  bool tf32 = false;
  bool graphs = true;
  cudaStream_t input_stream = nullptr;  // where foreign inputs are made; NULL: they are there
};

class Executable {
 public:
  static Result<std::unique_ptr<Executable>> make(Device& device,
                                                  Plan plan,
                                                  const Tools& tools,
                                                  const ExecutableOptions& options);
  ~Executable();
  Executable(const Executable&) = delete;

  Status run(State* state,
             const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec* exec);
  const Plan& plan() const { return plan_; }
  uint64_t graphs_captured() const { return captured_.load(); }
  uint64_t arena_bytes() const { return plan_.arena_bytes + scratch_bytes_; }
  std::vector<uint64_t> step_ns() const;

 private:
  struct Prepared {  // by step
    cudaKernel_t kernel = nullptr;
    std::unique_ptr<PreparedProduct> product;
    std::unique_ptr<PreparedConvolution> convolution;
  };
  // A set of addresses that came before. A graph never runs twice at once, so one arena does.
  struct Replay {
    std::vector<void*> key;
    cudaGraphExec_t graph = nullptr;  // NULL: seen once
    void* arena = nullptr;
    cudaEvent_t last = nullptr;  // behind its last launch
  };
  Executable(Device& device, Plan plan, const ExecutableOptions& options)
      : device_(device), plan_(std::move(plan)), options_(options) {}

  Status prepare(const Tools& tools);
  Status prepare_step(const Step& step, const Tools& tools, Prepared* out);
  ProductAlignment alignment_of(const Product& product) const;
  Status bind(State* state,
              const DLTensor* const* in,
              uint64_t n_in,
              const tn_outputs* outputs,
              std::vector<void*>* boundary) const;
  // `what`: "input x". Memory of this device that kernels can take as it is.
  Status check_memory(const DLTensor& given, const Signature& wanted, std::string_view what) const;
  void resolve(const std::vector<void*>& boundary, char* arena, std::vector<void*>* out) const;
  Status queue(const std::vector<void*>& addresses, cudaStream_t stream);
  Status queue_step(size_t i, const std::vector<void*>& addresses, cudaStream_t stream);
  Status launch(const Launch& work,
                cudaKernel_t kernel,
                const std::vector<void*>& addresses,
                cudaStream_t stream);
  Status wait_for_inputs(cudaStream_t stream);
  Status run_on(cudaStream_t stream, const std::vector<void*>& boundary, const tn_exec* exec);
  Status run_queued(const std::vector<void*>& boundary, cudaStream_t stream, bool timed);
  Status run_replay(const std::vector<void*>& boundary, cudaStream_t stream);
  Status capture(Replay& replay, cudaStream_t stream);
  void drop(Replay& replay);
  Status profile(const std::vector<void*>& addresses, cudaStream_t stream);
  Result<void*> new_arena(cudaStream_t stream);

  Device& device_;
  Plan plan_;
  ExecutableOptions options_;
  std::atomic<bool> replays_on_ = options_.graphs;  // until a capture fails
  uint64_t scratch_bytes_ = 0;                      // behind the arena, of one step at a time
  std::vector<Prepared> prepared_;
  std::vector<std::shared_ptr<Block>> weights_;
  mutable std::mutex mutex_;
  std::list<Replay> replays_;  // the last used first
  std::atomic<uint64_t> captured_ = 0;
  std::vector<uint64_t> step_ns_;
};

}  // namespace tenon::cuda
