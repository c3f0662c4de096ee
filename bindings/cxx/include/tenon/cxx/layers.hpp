// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a plan's layers run, and what refused to: backends say which implementation computes a
// layer, why those that they prefer do not, and between which of them measured times decided.

#include <map>
#include <string>
#include <vector>

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

// The layers between whose implementations times decided, those of equal times together: which one
// computes them, the times of all ("winograd 554 us, onednn 990 us"), how many and the first.
inline Json measured_of(const Json& layers) {
  std::map<std::string, Json> rows;  // by times
  std::vector<std::string> order;
  for (const Json& layer : layers) {
    std::string times;
    for (const Json& one : layer.value("measured", Json::array()))
      times += cat(times.empty() ? "" : ", ", one["implementation"].get<std::string>(), " ",
                   (one["ns"].get<int64_t>() + 500) / 1000, " us");
    if (times.empty()) continue;
    const auto [row, is_new] =
        rows.try_emplace(times, Json{{"implementation", layer["implementation"]},
                                     {"measured", times},
                                     {"layers", 0},
                                     {"first", layer.value("name", "")}});
    row->second["layers"] = row->second["layers"].get<int>() + 1;
    if (is_new) order.push_back(times);
  }
  Json listed = Json::array();
  for (const std::string& times : order)
    listed.push_back(rows[times]);
  return listed;
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
