// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors on the device, as a program that computes there hands them over, so that a figure holds
// no copy of its inputs.

#include <vector>

#include "device/device.hpp"

namespace tenon::cuda {

class DeviceTensors {
 public:
  explicit DeviceTensors(Device& device) : device_(device) {}
  ~DeviceTensors() {
    for (const DLTensor& view : views_)
      device_.free(view.data, nullptr);
  }
  DeviceTensors(const DeviceTensors&) = delete;
  DeviceTensors& operator=(const DeviceTensors&) = delete;

  // Finished when it returns.
  Status add(const Tensor& tensor) {
    DLTensor view = tensor.dl();
    uint64_t bytes = bytes_of(dtype_of(view), element_count(view));
    TN_TRY(block, device_.allocate(bytes, nullptr, "an input"));
    tensors_.push_back(tensor);  // its shape
    views_.push_back(view);
    views_.back().data = block;
    views_.back().byte_offset = 0;
    views_.back().device = {kDLCUDA, device_.info().id};
    TN_TRY(stream, device_.new_stream());
    Status copied = device_.copy(data_of<void>(view), false, block, true, bytes, stream);
    Status done = device_.health().check(cudaStreamSynchronize(stream), "a copy");
    device_.free_stream(stream);
    TN_CHECK(std::move(copied));
    return done;
  }
  std::vector<const DLTensor*> pointers() const {
    std::vector<const DLTensor*> out;
    for (const DLTensor& view : views_)
      out.push_back(&view);
    return out;
  }

 private:
  Device& device_;
  std::vector<Tensor> tensors_;
  std::vector<DLTensor> views_;
};

}  // namespace tenon::cuda
