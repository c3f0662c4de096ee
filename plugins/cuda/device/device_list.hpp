// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which GPUs there are, which of them can be used, and what to say where one cannot.

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/sdk/status.hpp"

namespace tenon::cuda {

constexpr int kOldestArchitecture = 80;

struct DeviceInfo {
  int id = 0;
  std::string name;
  uint64_t memory_bytes = 0;
  int architecture = 0;  // 90 for compute capability 9.0

  std::string unusable() const;  // why; empty: it can be used
};

struct DeviceList {
  std::vector<DeviceInfo> devices;
  std::string why_none;  // no driver, an old one, no GPU: what, and what to do
};

// driver, needed: CUDA's version numbers, 13000 for 13.0; a driver of 0 is none. answer: what the
// driver said, empty when it saw no GPU.
std::string why_no_devices(int driver, int needed, const std::string& answer);

// The one with this number, or an error that names those that there are.
Result<DeviceInfo> device_of(const DeviceList& list, int64_t id);

// What tn_backend.devices() answers. wanted: the only device that is asked for; -1: any.
std::string devices_json(const DeviceList& list, int64_t wanted);

}  // namespace tenon::cuda
