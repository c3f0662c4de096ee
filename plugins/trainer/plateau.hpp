// SPDX-License-Identifier: Apache-2.0
#pragma once
// A factor of the learning rate that follows a measured value: it is cut where the value gets no
// better, as PyTorch's ReduceLROnPlateau does. How far it is is a value of its own, which a run
// keeps; the rest is a pure function of it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tenon::trainer {

struct Plateau {
  double factor = 0.1;       // of a cut
  uint64_t patience = 10;    // values that are no better before one
  double threshold = 1e-4;   // a better value is so much better, as a part of the best
  uint64_t cooldown = 0;     // values after a cut that do not count as no better
  double lowest = 0;         // no rate goes below by a cut
  bool by_training = false;  // the loss of the training decides, not the validation

  struct State {
    bool has_best = false;
    double best = 0;
    uint64_t bad = 0, cooling = 0;
    double factor = 1;  // of all cuts so far
  };

  void see(double value, bool higher_is_better, State& at) const {
    double ahead =
        higher_is_better ? value - at.best * (1 + threshold) : at.best * (1 - threshold) - value;
    bool better = std::isfinite(value) && (!at.has_best || ahead > 0);
    at.bad = better ? 0 : at.bad + 1;
    if (better) {
      at.has_best = true;
      at.best = value;
    }
    if (at.cooling > 0) {
      --at.cooling;
      at.bad = 0;
    }
    if (at.bad <= patience) return;
    at.factor *= factor;
    at.cooling = cooldown;
    at.bad = 0;
  }

  // What the schedule says, cut.
  double rate(double scheduled, const State& at) const {
    return at.factor == 1 ? scheduled
                          : std::max(scheduled * at.factor, std::min(scheduled, lowest));
  }
};

}  // namespace tenon::trainer
