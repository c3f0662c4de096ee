// SPDX-License-Identifier: Apache-2.0
#include "cudnn.hpp"

#include <map>
#include <mutex>

#include "library.hpp"

namespace tenon::cuda {
namespace {

constexpr size_t kOldest = 90800;  // describes devices

Result<Cudnn> load(const std::string& name) {
  TN_TRY(library, Library::open(name, "cuDNN 9 for CUDA 13"));
  decltype(&cudnnGetVersion) version = nullptr;
  TN_CHECK(library.get("cudnnGetVersion", &version));
  if (version() < kOldest) {
    return Status(TN_UNAVAILABLE, cat("cuda: cuDNN ", version() / 10000, ".", version() / 100 % 100,
                                      " was found: install 9.8 or newer"));
  }
  Cudnn out{};
  TN_CHECK(library.get("cudnnCreate", &out.handle_new));
  TN_CHECK(library.get("cudnnDestroy", &out.handle_free));
  TN_CHECK(library.get("cudnnSetStream", &out.set_stream));
  TN_CHECK(library.get("cudnnGetErrorString", &out.text));
  TN_CHECK(library.get("cudnnGetLastErrorString", &out.last_error));
  TN_CHECK(library.get("cudnnBackendCreateDescriptor", &out.create));
  TN_CHECK(library.get("cudnnBackendDestroyDescriptor", &out.destroy));
  TN_CHECK(library.get("cudnnBackendSetAttribute", &out.set));
  TN_CHECK(library.get("cudnnBackendGetAttribute", &out.get_attribute));
  TN_CHECK(library.get("cudnnBackendFinalize", &out.finalize));
  TN_CHECK(library.get("cudnnBackendExecute", &out.execute));
  return out;
}

}  // namespace

// A failure is tried again, since somebody may install it meanwhile.
Result<const Cudnn*> Cudnn::get(const std::string& library) {
  static std::mutex mutex;
  static std::map<std::string, Cudnn> opened;
  std::lock_guard lock(mutex);
  if (auto found = opened.find(library); found != opened.end()) return &found->second;
  TN_TRY(made, load(library));
  return &opened.emplace(library, made).first->second;
}

std::string why_no_cudnn(const std::string& library) {
  if (library.empty()) return "convolution needs cuDNN 9: option cudnn is empty";
  Result<const Cudnn*> opened = Cudnn::get(library);
  return opened.ok() ? "" : "convolution needs cuDNN 9: " + reason_of(opened.status());
}

Status Cudnn::check(cudnnStatus_t status, std::string_view doing) const {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  char detail[512] = "";
  last_error(detail, sizeof detail);
  bool is_missing = status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
  return {is_missing ? TN_UNIMPLEMENTED : TN_INTERNAL,
          cat("cuda: cuDNN: ", doing, ": ", text(status), *detail ? ": " : "", detail)};
}

Result<Descriptor> Descriptor::make(const Cudnn& cudnn, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t raw = nullptr;
  TN_CHECK(cudnn.check(cudnn.create(type, &raw), "a descriptor"));
  return Descriptor(&cudnn, raw);
}

Status Descriptor::set(cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type,
                       int64_t count,
                       const void* values) {
  return cudnn_->check(cudnn_->set(raw_, name, type, count, values), "an attribute");
}

Status Descriptor::finish() {
  return cudnn_->check(cudnn_->finalize(raw_), "a descriptor");
}

Result<int64_t> Descriptor::count(cudnnBackendAttributeName_t name,
                                  cudnnBackendAttributeType_t type) const {
  int64_t got = 0;
  TN_CHECK(read(name, type, 0, &got, nullptr));
  return got;
}

Status Descriptor::read(cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type,
                        int64_t wanted,
                        int64_t* got,
                        void* values) const {
  return cudnn_->check(cudnn_->get_attribute(raw_, name, type, wanted, got, values),
                       "an attribute");
}

Result<Descriptor> cudnn_device(const Cudnn& cudnn, int device) {
  TN_TRY(made, Descriptor::make(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
  TN_CHECK(made.set_one(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, int32_t{device}));
  TN_CHECK(made.finish());
  return std::move(made);
}

Result<Descriptor> cudnn_device(const Cudnn& cudnn, const std::string& profile) {
  TN_TRY(made, Descriptor::make(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
  TN_CHECK(made.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                    static_cast<int64_t>(profile.size()), profile.data()));
  TN_CHECK(made.finish());
  return std::move(made);
}

}  // namespace tenon::cuda
