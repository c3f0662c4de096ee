// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text to machine code by NVRTC. Needs the library and no GPU, so that tests compile every kernel.

#include <string>

#include "tenon/sdk/status.hpp"

namespace tenon::cuda {

struct CompilerVersion {
  int major = 0, minor = 0;
};
// Fails where NVRTC is missing, with what to install.
Result<CompilerVersion> compiler_version();
// A cubin for compute capability architecture/10, of element.cuh and the source behind it.
Result<std::string> compile_text(const std::string& source, int architecture);

}  // namespace tenon::cuda
