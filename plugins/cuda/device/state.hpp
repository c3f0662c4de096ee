// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stays on the device between runs: weights that executables of one model share, and state.

#include <memory>
#include <string>

#include "tenon/sdk/backend/states.hpp"
#include "tenon/sdk/backend/weights.hpp"

#include "device.hpp"
#include "plan.hpp"

namespace tenon::cuda {

// Memory that goes back when its last user goes.
class Block {
 public:
  static Result<std::shared_ptr<Block>> make(Device& device, uint64_t bytes, std::string_view what);
  ~Block() { device_.free(address_, nullptr); }
  Block(const Block&) = delete;
  void* address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  // Whose copy this is: while it is here, the address of the original stays its own.
  void keep(Tensor original) { original_ = std::move(original); }

 private:
  Block(Device& device, void* address, uint64_t bytes)
      : device_(device), address_(address), bytes_(bytes) {}
  Device& device_;
  void* address_;
  uint64_t bytes_;
  Tensor original_;
};

class Weights {
 public:
  // On the device once, however many executables ask for it.
  Result<std::shared_ptr<Block>> get(Device& device, const Constant& weight);

 private:
  std::mutex mutex_;  // two threads that want the same would put it there twice
  backend::WeightCache<std::pair<int, bool>, Block> kept_;  // by device, and channels last
};

class State {
 public:
  explicit State(Device& device) : device_(device) {}
  // Zeros when it is new.
  Result<void*> address(const std::string& name, uint64_t bytes);
  Status set(const std::string& name, const DLTensor& value);
  Status get(const std::string& name, DLTensor* out);

 private:
  Device& device_;
  backend::StateTable<std::shared_ptr<Block>> values_;
};

}  // namespace tenon::cuda
