// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stays on the device between runs: weights that executables of one model share, and state.

#include <map>
#include <memory>
#include <string>
#include <tuple>

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

 private:
  Block(Device& device, void* address, uint64_t bytes)
      : device_(device), address_(address), bytes_(bytes) {}
  Device& device_;
  void* address_;
  uint64_t bytes_;
};

class Weights {
 public:
  // On the device once, however many executables ask for it.
  Result<std::shared_ptr<Block>> get(Device& device, const Constant& weight);

 private:
  struct Kept {
    Tensor tensor;  // so that its address stays its own
    std::weak_ptr<Block> block;
  };
  std::mutex mutex_;
  using Key = std::tuple<int, const void*, bool>;  // device, data, channels last
  std::map<Key, Kept> kept_;
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
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Block>> values_;
};

}  // namespace tenon::cuda
