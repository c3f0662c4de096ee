// SPDX-License-Identifier: Apache-2.0
#pragma once
// How often parameters were updated, for optimizers whose steps depend on it: one count for all in
// a state called WORD/step, and LAYER/WORD/step for those that rest with a layer (kRestsWithNote).

#include <map>
#include <string>

#include "coefficients.hpp"
#include "gradients.hpp"

namespace tenon::trainer {

using UpdateCounts = std::map<std::string, Value, std::less<>>;  // by layer; "": all others

inline std::string rests_with(const Parameter& one) {
  return std::string(text_of(one.value.note(kRestsWithNote)));
}

// Another group of parameters may have a count of its own.
inline std::string free_count_name(Graph graph, std::string_view word) {
  std::string name = cat(word, "/step");
  for (int i = 2; graph.find(name); ++i)
    name = cat(word, "/step", i);
  return name;
}

// Counts this update: scalars of `dtype` from 1 on.
inline Result<UpdateCounts> count_updates(EditView edit,
                                          Builder& b,
                                          std::string_view word,
                                          std::span<const Parameter> parameters,
                                          uint32_t dtype) {
  UpdateCounts out;
  for (const Parameter& one : parameters) {
    std::string layer = rests_with(one);
    if (out.contains(layer)) continue;
    const std::string name = layer.empty() ? std::string(word) : cat(layer, "/", word);
    TN_TRY(count, Slot::open(edit, free_count_name(edit.graph(), name), Type(TN_F32, {})));
    Value counted = b.add(count.before, b.number(1, TN_F32));
    TN_CHECK(b.status());
    TN_CHECK(count.close(edit, counted));
    out.emplace(std::move(layer), b.cast(counted, dtype));
  }
  return out;
}

}  // namespace tenon::trainer
