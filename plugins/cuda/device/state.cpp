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
  uint64_t bytes = bytes_of(dtype_of(view), element_count(view));
  std::lock_guard lock(mutex_);
  using Made = Result<std::shared_ptr<Block>>;
  const backend::WeightSource source{data, bytes, weight.tensor.identity()};
  return kept_.get(source, {device.info().id, weight.channels_last}, [&]() -> Made {
    TN_TRY(block, Block::make(device, bytes, "a constant"));
    std::vector<unsigned char> moved;
    if (weight.channels_last) moved = channels_last_bytes(weight.tensor);
    TN_CHECK(copy_now(device, weight.channels_last ? moved.data() : data, false, block->address(),
                      bytes));
    block->keep(weight.tensor);
    return block;
  });
}

Result<void*> State::address(const std::string& name, uint64_t bytes) {
  TN_TRY(block, values_.get(name, [&]() -> Result<std::shared_ptr<Block>> {
    TN_TRY(made, Block::make(device_, bytes, cat("state ", name)));
    TN_CHECK(zero_now(device_, made->address(), bytes));
    return made;
  }));
  if ((*block)->bytes() == bytes) return (*block)->address();
  return invalid(
      cat("cuda: state ", name, ": expected ", (*block)->bytes(), " bytes, got ", bytes));
}

Status State::set(const std::string& name, const DLTensor& value) {
  uint64_t bytes = bytes_of(dtype_of(value), element_count(value));
  TN_TRY(address, this->address(name, bytes));
  return copy_now(device_, data_of<const void>(value), false, address, bytes);
}

Status State::get(const std::string& name, DLTensor* out) {
  const std::shared_ptr<Block>* found = values_.find(name);
  if (!found) return values_.unknown(name);
  std::shared_ptr<Block> block = *found;
  uint64_t bytes = std::min(block->bytes(), bytes_of(dtype_of(*out), element_count(*out)));
  return copy_now(device_, block->address(), true, data_of<void>(*out), bytes);
}

}  // namespace tenon::cuda
