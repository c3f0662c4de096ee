// SPDX-License-Identifier: Apache-2.0
#pragma once
// Building random valid instances, for the sample columns: a small seeded generator and inputs
// with random shapes. The numbers themselves are the tester's business.

#include <string>
#include <vector>

#include "tenon/sdk/role/op.hpp"
#include "tenon/sdk/splitmix.hpp"

namespace tenon::ops {

class Sampler : public SampleIntegers {
 public:
  Sampler(EditView edit, uint64_t seed) : SampleIntegers(seed), edit_(edit) {}

  bool coin() { return integer(0, 1) == 1; }
  std::vector<int64_t> shape(int64_t least_rank, int64_t most_rank, int64_t largest = 5) {
    std::vector<int64_t> dims(static_cast<size_t>(integer(least_rank, most_rank)));
    for (int64_t& dim : dims)
      dim = integer(1, largest);
    return dims;
  }
  // A shape that broadcasts with `dims`: leading dimensions dropped, some others 1.
  std::vector<int64_t> broadcastable(const std::vector<int64_t>& dims) {
    size_t drop = dims.empty() ? 0 : static_cast<size_t>(integer(0, int64_t(dims.size()) - 1));
    std::vector<int64_t> out(dims.begin() + static_cast<std::ptrdiff_t>(drop), dims.end());
    for (int64_t& dim : out) {
      if (integer(0, 3) == 0) dim = 1;
    }
    return out;
  }
  Result<Value> input(uint32_t dtype, const std::vector<int64_t>& dims) {
    return edit_.input("in" + std::to_string(n_inputs_++), Type(dtype, dims));
  }
  const EditView& edit() const { return edit_; }

 private:
  EditView edit_;
  int n_inputs_ = 0;
};

}  // namespace tenon::ops
