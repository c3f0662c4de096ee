// SPDX-License-Identifier: Apache-2.0
#include "compiler.hpp"

#include <mutex>
#include <optional>

#include <nvrtc.h>

#include "images.hpp"
#include "library.hpp"

namespace tenon::cuda {
namespace {

struct Nvrtc {
  decltype(&nvrtcVersion) version;
  decltype(&nvrtcCreateProgram) create;
  decltype(&nvrtcDestroyProgram) destroy;
  decltype(&nvrtcCompileProgram) compile;
  decltype(&nvrtcGetProgramLogSize) log_size;
  decltype(&nvrtcGetProgramLog) log;
  decltype(&nvrtcGetCUBINSize) cubin_size;
  decltype(&nvrtcGetCUBIN) cubin;
  decltype(&nvrtcGetErrorString) error;
};

Result<Nvrtc> open() {
  TN_TRY(library, Library::open("libnvrtc.so.13", "the CUDA toolkit 13 (NVRTC)"));
  Nvrtc made{};
  TN_CHECK(library.get("nvrtcVersion", &made.version));
  TN_CHECK(library.get("nvrtcCreateProgram", &made.create));
  TN_CHECK(library.get("nvrtcDestroyProgram", &made.destroy));
  TN_CHECK(library.get("nvrtcCompileProgram", &made.compile));
  TN_CHECK(library.get("nvrtcGetProgramLogSize", &made.log_size));
  TN_CHECK(library.get("nvrtcGetProgramLog", &made.log));
  TN_CHECK(library.get("nvrtcGetCUBINSize", &made.cubin_size));
  TN_CHECK(library.get("nvrtcGetCUBIN", &made.cubin));
  TN_CHECK(library.get("nvrtcGetErrorString", &made.error));
  return made;
}

// Opened once; a failure is tried again, since somebody may install it meanwhile.
Result<const Nvrtc*> nvrtc() {
  static std::mutex mutex;
  static std::optional<Nvrtc> opened;
  std::lock_guard lock(mutex);
  if (!opened) {
    TN_TRY(made, open());
    opened = made;
  }
  return &*opened;
}

std::string log_of(const Nvrtc& rtc, nvrtcProgram program) {
  size_t size = 0;
  if (rtc.log_size(program, &size) != NVRTC_SUCCESS || size == 0) return "no log";
  std::string log(size, '\0');
  rtc.log(program, log.data());
  return log.c_str();
}

Result<std::string> build(const Nvrtc& rtc, nvrtcProgram program, int architecture) {
  std::string target = cat("--gpu-architecture=sm_", architecture);
  // 186: a comparison of unsigned with 0 is what a template says for both kinds of integers.
  const char* options[] = {target.c_str(), "--std=c++17", "--diag-suppress=186"};
  nvrtcResult result = rtc.compile(program, 3, options);
  if (result != NVRTC_SUCCESS) {
    return Status(TN_INTERNAL, cat("cuda: NVRTC: ", rtc.error(result), " for sm_", architecture,
                                   ": ", log_of(rtc, program)));
  }
  size_t size = 0;
  result = rtc.cubin_size(program, &size);
  std::string cubin(size, '\0');
  if (result == NVRTC_SUCCESS) result = rtc.cubin(program, cubin.data());
  if (result != NVRTC_SUCCESS) return Status(TN_INTERNAL, cat("cuda: NVRTC: ", rtc.error(result)));
  return cubin;
}

}  // namespace

Result<CompilerVersion> compiler_version() {
  TN_TRY(rtc, nvrtc());
  CompilerVersion out;
  rtc->version(&out.major, &out.minor);
  return out;
}

Result<std::string> compile_text(const std::string& source, int architecture) {
  TN_TRY(rtc, nvrtc());
  std::string text = tenon_cuda_image_element + source;
  nvrtcProgram program = nullptr;
  nvrtcResult result = rtc->create(&program, text.c_str(), "pointwise.cu", 0, nullptr, nullptr);
  if (result != NVRTC_SUCCESS) return Status(TN_INTERNAL, cat("cuda: NVRTC: ", rtc->error(result)));
  Result<std::string> built = build(*rtc, program, architecture);
  rtc->destroy(&program);
  return built;
}

}  // namespace tenon::cuda
