// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a plan's layers run, and what refused to: backends say which implementation computes a layer
// and why those that they prefer do not.

#include "tenon/cxx/plan.hpp"

namespace tenon::cxx {

// The layers of a plan that has been prepared, as its backends describe them: "name", "op",
// "backend", "kernel", "implementation", "refused". Parts of other backends are left out.
inline Json planned_layers(const Json& described) {
  Json layers = Json::array();
  for (const Json& part : described.value("partitions", Json::array())) {
    for (Json layer : part.value("layers", Json::array())) {
      layer["backend"] = part.value("backend", "");
      layers.push_back(std::move(layer));
    }
  }
  return layers;
}

// Each implementation that refused layers, with the reason, how many there are and the first one.
inline Json refusals_of(const Json& layers) {
  Json rows = Json::array();
  for (const Json& layer : layers) {
    for (const Json& refusal : layer.value("refused", Json::array())) {
      auto is_same = [&](const Json& row) {
        return row["implementation"] == refusal["implementation"] && row["why"] == refusal["why"];
      };
      auto row = std::find_if(rows.begin(), rows.end(), is_same);
      if (row == rows.end()) {
        rows.push_back(refusal);
        rows.back()["layers"] = 1;
        rows.back()["first"] = layer.value("name", "");
      } else {
        (*row)["layers"] = (*row)["layers"].get<int>() + 1;
      }
    }
  }
  return rows;
}

}  // namespace tenon::cxx
