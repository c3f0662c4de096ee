// SPDX-License-Identifier: Apache-2.0
#include "brief_waits.hpp"

#include <cstdlib>
#include <filesystem>

#include <unistd.h>

namespace tenon::command {

void start_with_brief_waits(char** argv) {
  constexpr const char* kTurns = "3000";
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown || setenv("GOMP_SPINCOUNT", kTurns, 0) != 0) return;
  execv(self.c_str(), argv);  // comes back where it fails: then libgomp's own waits have to do
}

}  // namespace tenon::command
