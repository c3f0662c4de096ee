// SPDX-License-Identifier: Apache-2.0
#pragma once
// A part on the fake device: a plan on the reference backend that a stream runs over device memory.
// State is kept in a layout of its own: its bytes, backwards.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tenon/sdk/backend/states.hpp"
#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/run.hpp"

#include "device.hpp"

namespace tenon::fakedev {

class DeviceState {
 public:
  Status set(std::string_view name, const DLTensor& value);
  Status get(std::string_view name, DLTensor* out);
  void keep(std::string_view name, const std::vector<char>& bytes) {
    values_.set(name, {bytes.rbegin(), bytes.rend()});
  }
  // Zeros when it is new.
  std::vector<char> read(std::string_view name, uint64_t bytes);

 private:
  backend::StateTable<std::vector<char>> values_;  // bytes, backwards
};

class Executable {
 public:
  static Result<std::unique_ptr<Executable>> compile(tn_ctx* ctx,
                                                     const tn_graph* part,
                                                     const Memory* memory);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Queues the part as `exec` says; waits where the shape of an output depends on data.
  Status run(DeviceState* state,
             const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec* exec,
             bool fail);
  // Of the last run with TN_EXEC_PROFILE.
  std::string profile() const;

 private:
  struct Io {
    bool is_state = false;
    std::string name;  // of the state
    Type type;
  };
  struct Launch;
  Executable(tn_ctx* ctx, const Memory* memory) : ctx_(ctx), memory_(memory) {}
  Status take_inputs(Launch& launch, const DLTensor* const* in, uint64_t n_in) const;
  Status ask_outputs(Launch& launch, const tn_outputs* outputs) const;
  Status work(Launch& launch);

  tn_ctx* ctx_;
  const Memory* memory_;
  tn_plan* plan_ = nullptr;
  std::string first_node_;
  std::atomic<uint64_t> profiled_ns_{0};
  std::vector<Io> inputs_, outputs_;
  bool late_shapes_ = false;
};

// Copies of the part's graph may not have states of their own here: the plan below would keep them.
Result<OwnedGraph> without_states(tn_ctx* ctx, const tn_graph* part);

}  // namespace tenon::fakedev
