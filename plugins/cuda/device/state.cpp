// SPDX-License-Identifier: Apache-2.0
#include "state.hpp"

namespace tenon::cuda {
namespace {

// On a stream of its own, finished when it returns.
Status copy_now(Device& device, const void* from, bool from_device, void* to, uint64_t bytes) {
  TN_TRY(stream, device.new_stream());
  Status status = device.copy(from, from_device, to, !from_device, bytes, stream);
  Status done = device.health().check(cudaStreamSynchronize(stream), "a copy");
  device.free_stream(stream);
  return status.ok() ? std::move(done) : std::move(status);
}

}  // namespace

Result<std::shared_ptr<Block>> Block::make(Device& device, uint64_t bytes, std::string_view what) {
  TN_TRY(address, device.allocate(bytes, nullptr, what));
  return std::shared_ptr<Block>(new Block(device, address, bytes));
}

Result<std::shared_ptr<Block>> Weights::get(Device& device, const Constant& weight) {
  DLTensor view = weight.tensor.dl();
  const void* data = data_of<const void>(view);
  std::lock_guard lock(mutex_);
  Kept& kept = kept_[{device.info().id, data, weight.channels_last}];
  if (std::shared_ptr<Block> block = kept.block.lock()) return block;
  uint64_t bytes = bytes_of(dtype_of(view), element_count(view));
  TN_TRY(block, Block::make(device, bytes, "a constant"));
  std::vector<unsigned char> moved;
  if (weight.channels_last) {
    moved = channels_last_bytes(weight.tensor);
    data = moved.data();
  }
  TN_CHECK(copy_now(device, data, false, block->address(), bytes));
  kept.tensor = weight.tensor;
  kept.block = block;
  return block;
}

Result<void*> State::address(const std::string& name, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Block>& block = values_[name];
  if (block) return block->address();
  TN_TRY(made, Block::make(device_, bytes, cat("state ", name)));
  TN_CHECK(device_.health().check(cudaMemset(made->address(), 0, bytes), cat("state ", name)));
  TN_CHECK(device_.health().check(cudaDeviceSynchronize(), cat("state ", name)));
  block = made;
  return block->address();
}

Status State::set(const std::string& name, const DLTensor& value) {
  uint64_t bytes = bytes_of(dtype_of(value), element_count(value));
  TN_TRY(address, this->address(name, bytes));
  return copy_now(device_, data_of<const void>(value), false, address, bytes);
}

Status State::get(const std::string& name, DLTensor* out) {
  std::shared_ptr<Block> block;
  {
    std::lock_guard lock(mutex_);
    auto found = values_.find(name);
    if (found == values_.end() || !found->second) {
      return {TN_NOT_FOUND, cat("cuda: no state ", name)};
    }
    block = found->second;
  }
  uint64_t bytes = std::min(block->bytes(), bytes_of(dtype_of(*out), element_count(*out)));
  return copy_now(device_, block->address(), true, data_of<void>(*out), bytes);
}

}  // namespace tenon::cuda
