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

// Likewise: the default stream would break captures of other threads.
Status zero_now(Device& device, void* to, uint64_t bytes) {
  TN_TRY(stream, device.new_stream());
  Status status = device.health().check(cudaMemsetAsync(to, 0, bytes, stream), "a new state");
  Status done = device.health().check(cudaStreamSynchronize(stream), "a new state");
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
  Key key{device.info().id, data, weight.channels_last};
  if (auto found = kept_.find(key); found != kept_.end()) {
    if (std::shared_ptr<Block> block = found->second.block.lock()) return block;
  }
  // What nobody uses any more would keep its tensor for ever.
  std::erase_if(kept_, [](const auto& one) { return one.second.block.expired(); });
  uint64_t bytes = bytes_of(dtype_of(view), element_count(view));
  TN_TRY(block, Block::make(device, bytes, "a constant"));
  std::vector<unsigned char> moved;
  if (weight.channels_last) {
    moved = channels_last_bytes(weight.tensor);
    data = moved.data();
  }
  TN_CHECK(copy_now(device, data, false, block->address(), bytes));
  kept_[key] = {weight.tensor, block};
  return block;
}

Result<void*> State::address(const std::string& name, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Block>& block = values_[name];
  if (block && block->bytes() != bytes) {
    return invalid(cat("cuda: state ", name, ": expected ", block->bytes(), " bytes, got ", bytes));
  }
  if (block) return block->address();
  TN_TRY(made, Block::make(device_, bytes, cat("state ", name)));
  TN_CHECK(zero_now(device_, made->address(), bytes));
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
