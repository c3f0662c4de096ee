// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who decides between implementations that all apply to a node and are marked as rivals
// (implementations/choice.hpp): without a chooser the rules do. Lowering and its implementations
// know this interface; choosing/ measures and keeps.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "plan.hpp"

namespace tenon::onednn {

struct Decision {
  std::string implementation;
  std::vector<Timed> measured = {};  // empty: nobody has measured, so it is what the rules choose
};

// An implementation with the steps that it makes of the node and of what its rivals take along.
struct Contestant {
  std::string implementation;
  Plan steps;
};

struct Contest {
  std::string key;                      // of all that the times depend on beside machine and build
  std::vector<Contestant> contestants;  // what the rules choose is the first
  int threads = 1;
  bool reads_cold_weights = false;  // the model's weights do not stay in the cores' caches
  dnnl::engine engine = {};
};

class Chooser {
 public:
  Chooser() = default;
  virtual ~Chooser() = default;
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;

  // What was decided for this key earlier.
  virtual std::optional<Decision> kept(const std::string& key) = 0;
  // Whether a contest would be held now.
  virtual bool measures() = 0;
  // Decides, and keeps it.
  virtual Decision decide(Contest contest) = 0;
  // Keeps, without a contest, what the rules choose.
  virtual Decision keep_ruled(const std::string& key, const std::string& ruled) = 0;
};

}  // namespace tenon::onednn
