// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a way of decomposing has to say; the passes differ in it and in nothing else.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layer.hpp"
#include "steps.hpp"

namespace tenon::decomposer {

using Ranks = std::vector<std::pair<std::string_view, int64_t>>;  // {"rank_in", 64}, ...

struct Factors {
  Ranks ranks;
  double error = 0;  // norm of the difference over the norm of the weight
  std::vector<Step> steps;
  std::string why = {};  // not empty: not fit for use
};

// Why a layer is not for a method; an empty `why`: it is.
struct Refusal {
  std::string why;
  std::string suited = {};  // the pass that takes such layers; empty: none is known

  explicit operator bool() const { return !why.empty(); }
};

inline Refusal refuse_groups(const Layer& layer) {
  if (layer.group == 1) return {};
  return {cat("a convolution in ", layer.group, " groups")};
}

// Stateless but for its options: layers are factored on several threads at once.
class Method {
 public:
  virtual ~Method() = default;
  // By the layer's form and the options.
  virtual Refusal refuse(const Layer& layer) const = 0;
  // The first step reads all channels of the input.
  virtual Factors factor(const Layer& layer) const = 0;
  // The same with ranks by this share of energy; nullptr: its ranks cannot be found so.
  virtual std::unique_ptr<Method> at_energy(double energy) const = 0;
  // The error that the same ranks have on this weight, of random numbers.
  virtual double random_error(const Kernel& random,
                              const Layer& layer,
                              const Ranks& ranks) const = 0;
};

}  // namespace tenon::decomposer
