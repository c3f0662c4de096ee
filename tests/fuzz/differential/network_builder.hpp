// SPDX-License-Identifier: Apache-2.0
#pragma once
// A random network under construction: what its blocks read, and what they give.

#include <string>
#include <vector>

#include "tenon/sdk/build.hpp"

#include "mutants/mutation.hpp"

namespace tenon::fuzz {

class NetworkBuilder {
 public:
  NetworkBuilder(EditView edit, Random& numbers) : b(edit), random(numbers) {}

  Builder b;
  Random& random;

  // What a block reads: mostly one of the latest values of this rank, else an input of the network.
  // Rank 4: [images, channels, height, width]; 3: [sequences, steps, features]; 2: [rows,
  // features].
  Value take(size_t rank);
  // Another value of the same type, or an input.
  Value like(Value x);
  // A parameter: an input or a constant, of a size that keeps the network's numbers near 1.
  Value weight(const std::vector<int64_t>& dims);
  // A constant of positive numbers: variances, and parameters that are not trained.
  Value positive(const std::vector<int64_t>& dims);
  Value input(const Type& type) { return b.take(b.edit().input(name("x"), type)); }
  void give(Value x) {
    if (x) values_.push_back(x);
  }
  const std::vector<Value>& values() const { return values_; }
  int64_t one_of(std::initializer_list<int64_t> all) {
    return *(all.begin() + random.below(all.size()));
  }
  bool maybe() { return random.one_in(2); }

 private:
  std::string name(std::string_view kind) { return cat(kind, n_inputs_++); }
  Type new_type(size_t rank);

  std::vector<Value> values_;
  size_t n_inputs_ = 0;
};

// The prefix of inputs whose numbers are those of filled_weight.
inline constexpr std::string_view kWeight = "weight";
// Numbers of [-2, 2] over the square root of elements / dims[0].
Result<Tensor> filled_weight(tn_ctx* ctx, const Type& type, Random& random);

// A block of layers as networks have them. To add one, add a row to the list of its file.
struct Block {
  const char* name;
  void (*grow)(NetworkBuilder& net);
};
const std::vector<Block>& blocks_of_images();
const std::vector<Block>& blocks_of_sequences();
// An activation of any kind.
Value activated(NetworkBuilder& net, Value x);

}  // namespace tenon::fuzz
