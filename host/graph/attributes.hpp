// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attributes and notes of a graph: immutable values by name, shared between the graphs that have
// them, so that what was borrowed lives as long as the last of them.

#include <memory>
#include <string>
#include <vector>

#include "values/any.hpp"

namespace tenon::host {

using AnyRef = std::shared_ptr<const Any>;

// Copies text and lists, retains a tensor, takes a snapshot of a graph. `what` opens the message
// when the value cannot be stored.
Result<AnyRef> own(const tn_any& value, std::string_view what);
const tn_graph* graph_in(const tn_any& value);  // NULL unless it is a body

struct NamedAny {
  std::string name;
  AnyRef value;

  bool operator==(const NamedAny& other) const {
    return name == other.name && *value == *other.value;
  }
};
// Sorted by name, so that equal graphs print equal text.
using NamedAnys = std::vector<NamedAny>;

const NamedAny* find(const NamedAnys& list, std::string_view name);
// NULL removes. Returns what was there before, so that the caller can keep it alive.
AnyRef assign(NamedAnys& list, std::string_view name, AnyRef value);

}  // namespace tenon::host
