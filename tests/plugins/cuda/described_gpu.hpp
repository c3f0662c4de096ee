// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPUs that are not here, in words: cuDNN makes plans for them all the same.

#include <memory>

#include <nlohmann/json.hpp>

#include "device/convolution_graph.hpp"
#include "lowering.hpp"

namespace tenon::cuda::test {

// Numbers of one kind of GPU, as cuDNN writes them: an A100 for 80, an H100 for 90.
inline std::string profile(int architecture) {
  bool is_hopper = architecture >= 90;
  return nlohmann::json{{"maxGridSize", {2147483647, 65535, 65535}},
                        {"maxBlockSize", {1024, 1024, 64}},
                        {"regsPerBlock", 65536},
                        {"multiProcessorCount", is_hopper ? 132 : 108},
                        {"warpSize", 32},
                        {"maxSharedMemoryPerBlock", 49152},
                        {"maxSharedMemoryPerBlockOptin", is_hopper ? 232448 : 166912},
                        {"reservedSharedMemoryPerBlock", 1024},
                        {"maxRegistersPerSM", 65536},
                        {"maxCtasPerSM", 32},
                        {"maxThreadsPerBlock", 1024},
                        {"maxThreadsPerSM", 2048},
                        {"pciDeviceId", 0},
                        {"isTccDriver", 0},
                        {"supportCoopLaunch", 1},
                        {"totalGlobalMem", 80000000000},
                        {"smClockRateKHz", 1410000},
                        {"memClockRateKHz", 1593000},
                        {"l2CacheSize", 41943040},
                        {"cudaDeviceId", 0},
                        {"deviceVer", architecture * 10},
                        {"driverVer", 13000},
                        {"deviceName", "a GPU"}}
      .dump();
}

// That GPU: convolutions run where cuDNN has a plan for them.
inline Result<Target> described_target(tn_ctx* ctx, int architecture) {
  TN_TRY(cudnn, Cudnn::get());
  TN_TRY(made, cudnn_device(*cudnn, profile(architecture)));
  auto device = std::make_shared<Descriptor>(std::move(made));
  Target target{ctx, architecture};
  target.why_no_convolution = [device, cudnn = cudnn](const Convolution& form) {
    Result<ConvolutionGraph> plan = ConvolutionGraph::make(*cudnn, form, false, *device);
    return plan.ok() ? "" : plan.status().message();
  };
  return target;
}

}  // namespace tenon::cuda::test
