// SPDX-License-Identifier: Apache-2.0
#include "device_list.hpp"

#include <algorithm>

#include "tenon/dlpack.h"

#include "tenon/sdk/backend/report.hpp"

namespace tenon::cuda {
namespace {

std::string version_text(int version) {
  return cat(version / 1000, ".", version % 1000 / 10);
}

std::string entry(const DeviceInfo& info) {
  std::string why = info.unusable();
  return cat("{\"id\": ", info.id, ", \"type\": ", static_cast<int>(kDLCUDA),
             ", \"name\": ", backend::json_text(info.name),
             ", \"memory_bytes\": ", info.memory_bytes, ", \"architecture\": ", info.architecture,
             why.empty() ? "" : ", \"why\": " + backend::json_text(why), "}");
}

}  // namespace

std::string DeviceInfo::unusable() const {
  if (architecture >= kOldestArchitecture) return {};
  return cat("device ", id, ", ", name, ": compute capability ", architecture / 10, ".",
             architecture % 10, ", ", kOldestArchitecture / 10, ".", kOldestArchitecture % 10,
             " or newer is needed");
}

std::string why_no_devices(int driver, int needed, const std::string& answer) {
  if (driver == 0) {
    return "no NVIDIA driver was found (libcuda.so.1): install driver 580 or newer, for CUDA 13";
  }
  if (driver < needed) {
    return cat("the NVIDIA driver is for CUDA ", version_text(driver), ", ", version_text(needed),
               " is needed: install driver 580 or newer");
  }
  if (answer.empty()) {
    return "the NVIDIA driver sees no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES";
  }
  return "the NVIDIA driver answers " + answer;
}

Result<DeviceInfo> device_of(const DeviceList& list, int64_t id) {
  if (!list.why_none.empty()) return Status(TN_UNAVAILABLE, cat("cuda: ", list.why_none));
  std::string there;
  for (const DeviceInfo& info : list.devices) {
    there += cat(there.empty() ? "" : ", ", info.id, " (", info.name, ")");
    if (info.id != id) continue;
    std::string why = info.unusable();
    return why.empty() ? Result<DeviceInfo>(info) : Status(TN_UNAVAILABLE, cat("cuda: ", why));
  }
  return Status(TN_INVALID_ARGUMENT, cat("cuda: device ", id, ": expected one of ", there));
}

std::string devices_json(const DeviceList& list, int64_t wanted) {
  std::string text;
  auto add = [&](const std::string& one) { text += cat(text.empty() ? "" : ", ", one); };
  if (wanted >= 0) {
    Result<DeviceInfo> found = device_of(list, wanted);
    add(found.ok() ? entry(*found)
                   : cat("{\"why\": ", backend::json_text(found.status().text()), "}"));
    return cat("[", text, "]");
  }
  for (const DeviceInfo& info : list.devices)
    add(entry(info));
  if (!list.why_none.empty()) add(cat("{\"why\": ", backend::json_text(list.why_none), "}"));
  return cat("[", text, "]");
}

}  // namespace tenon::cuda
