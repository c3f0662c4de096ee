// SPDX-License-Identifier: Apache-2.0
#pragma once
// The draws of "trainer.drop_layers": which of its sets of layers a step leaves out.

#include <string>
#include <string_view>

#include "tenon/sdk/status.hpp"

#include "layer_sets.hpp"

namespace tenon::trainer {

inline constexpr std::string_view kLayerKeep = "layer_keep";  // as schedules name it

struct LayerDraws {
  std::vector<LayerSets::Set> sets;  // empty: no layer is ever left out
  std::vector<std::string> names;    // of the layers
  double lowest_keep = 1;

  // From what the pass reports.
  static Result<LayerDraws> from(std::string_view report);
  std::string names_in(size_t set) const;
  // The set of this update, as a function of it and the seed; keep: what layer_keep is there.
  Result<size_t> draw(uint64_t seed, uint64_t update, double keep) const;
};

}  // namespace tenon::trainer
