// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two forms that saved values take between forward and backward: quantized to 8 bits with a
// scale and a least value for each group, rounded at random, or bfloat16.

#include <map>

#include "tenon/sdk/build.hpp"

namespace tenon::autodiff {

struct Packed {
  std::vector<Value> parts;  // what is kept
  int64_t bytes = 0;         // of them
};

// Writes the nodes. All random numbers are drawn at once, by `key`, i64[2]: a backend that has no
// random numbers gives up one node to another, not one for each value.
class Compression {
 public:
  Compression(Builder& builder, Value key, int64_t n_draws);

  // The largest divisor of `elements` up to `most` that is at least 32: how many numbers share a
  // scale; 0: there is none.
  static int64_t group_of(int64_t elements, int64_t most);

  Packed pack_codes(Value x, int64_t group);
  // How many draws pack_codes takes for values of so many elements and these groups.
  using Form = std::pair<int64_t, int64_t>;  // elements, group
  static int64_t n_draws(const std::vector<Form>& values);
  Value draws() const { return draws_; }

  // As `like`: its type, from the barriers behind which the parts stand.
  Value unpack_codes(const std::vector<Value>& parts, Value like);
  Packed pack_half(Value x);
  Value unpack_half(Value part, Value like);

 private:
  Value draw(const std::vector<int64_t>& shape);
  Value column(int64_t group);

  Builder& b_;
  Value draws_;
  int64_t used_ = 0;
  std::map<int64_t, Value> columns_;  // by group
};

}  // namespace tenon::autodiff
