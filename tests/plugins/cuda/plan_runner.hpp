// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a plan of the CUDA backend on the CPU: its kernels emulated, products and convolutions as
// plain loops. So import, grouping, generated text, arguments and the arena are tested without a
// GPU; what is not are cuBLASLt, cuDNN and the runtime.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "plan.hpp"

namespace tenon::cuda::test {

// Generated texts, compiled by the C++ compiler of the build into one library.
class Emulator {
 public:
  explicit Emulator(std::string folder) : folder_(std::move(folder)) {}
  ~Emulator();
  void add(const Plan& plan);  // its generated kernels
  std::string build();         // empty, or what the compiler said
  using Kernel = void (*)(const void*, unsigned, unsigned);
  Kernel find(const std::string& symbol) const;

 private:
  std::string folder_, text_;
  std::set<std::string> known_;
  std::vector<void*> libraries_;
};

using Bytes = std::vector<unsigned char>;

struct Ran {
  std::vector<Bytes> outputs;
  unsigned fault = 0;
};

// states: by position; made of zeros when empty, and kept.
Ran run_plan(const Plan& plan,
             const Emulator& emulator,
             const std::vector<Bytes>& inputs,
             std::vector<Bytes>* states);

}  // namespace tenon::cuda::test
